-- The shared grant with the highest first token that is not above this token.
SELECT * FROM grants WHERE resource = ?1 AND mode = 'shared' AND token <= ?2
ORDER BY token DESC LIMIT 1
