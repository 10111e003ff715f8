-- Whether an exclusive grant of this resource is in the table, alive or not.
SELECT 1 AS found FROM grants WHERE resource = ?1 AND mode = 'exclusive' LIMIT 1
