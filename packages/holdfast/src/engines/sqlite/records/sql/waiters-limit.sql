-- The limit of the shared claims in the queue. All of them have the same limit, so one row is
-- enough.
SELECT share_limit FROM waiters WHERE resource = ?1 AND mode = 'shared' LIMIT 1
