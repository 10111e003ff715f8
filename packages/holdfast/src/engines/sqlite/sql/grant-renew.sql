-- Extends a grant that is alive in the holder's own frame, in one step.
UPDATE grants SET ttl_ms = ?3, expires_at = ?4, version = version + 1
WHERE resource = ?1 AND grant_id = ?2 AND frame = ?5 AND expires_at > ?6 AND revoked = 0
