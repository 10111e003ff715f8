-- Sets a new end of life, counted in the caller's frame, and makes the grant a claimed one.
UPDATE grants SET ttl_ms = ?3, frame = ?4, expires_at = ?5, version = version + 1, claimed = 1
WHERE resource = ?1 AND grant_id = ?2
