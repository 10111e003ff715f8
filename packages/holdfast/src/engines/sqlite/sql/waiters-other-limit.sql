-- Shared claims in line that carry another limit than this one.
SELECT share_limit FROM waiters
WHERE resource = ?1 AND mode = 'shared' AND share_limit IS NOT ?2 LIMIT 1
