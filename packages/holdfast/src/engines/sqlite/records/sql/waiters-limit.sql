-- The limit of a shared claim in line. All of them have the same, so one of them tells it.
SELECT share_limit FROM waiters WHERE resource = ?1 AND mode = 'shared' LIMIT 1
