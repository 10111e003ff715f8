-- Extends a grant in one step if it is alive in the caller's frame. Refuses if the holder has left
-- the grant (?9 leaves it), if a later renewal was carried out, or if the token in use was revoked.
UPDATE grants SET ttl_ms = ?3, expires_at = ?4, version = version + 1, last_order = ?7,
  revoked = CASE WHEN ?8 > token_index THEN 0 ELSE revoked END,
  token_index = max(token_index, ?8),
  peer = CASE WHEN ?9 THEN '' ELSE peer END
WHERE resource = ?1 AND grant_id = ?2 AND frame = ?5 AND expires_at > ?6
  AND last_order <= ?7 AND (revoked = 0 OR ?8 > token_index) AND (peer <> '' OR ?9)
