DELETE FROM waiters WHERE peer IN (SELECT value FROM json_each(?1))
