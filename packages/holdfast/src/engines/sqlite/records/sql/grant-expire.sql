-- Ends the life of a dead holder's grant now; its lock-delay starts here.
UPDATE grants SET frame = ?3, expires_at = ?4, version = version + 1
WHERE resource = ?1 AND grant_id = ?2
