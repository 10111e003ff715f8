-- Deletes those of the peers (?1, a JSON list) to which no grant refers. Reads all grants once,
-- however many peers there are.
DELETE FROM peers WHERE id IN (SELECT value FROM json_each(?1))
  AND id NOT IN (SELECT peer FROM grants WHERE peer IN (SELECT value FROM json_each(?1)))
