-- The shared grant whose tokens begin with this one, or last before it.
SELECT * FROM grants WHERE resource = ?1 AND mode = 'shared' AND token <= ?2
ORDER BY token DESC LIMIT 1
