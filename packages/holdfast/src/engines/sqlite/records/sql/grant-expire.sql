-- Expires a dead holder's grant now. Its lock-delay starts at this instant.
UPDATE grants SET frame = ?3, expires_at = ?4, version = version + 1
WHERE resource = ?1 AND grant_id = ?2
