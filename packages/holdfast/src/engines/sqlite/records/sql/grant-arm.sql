-- Restarts a grant's ttl in the caller's frame, and marks the grant as claimed. A repeated acquire
-- may arrive after a renewal with a longer ttl, and must not shorten it.
UPDATE grants SET
  expires_at = CASE WHEN frame = ?4 AND claimed = 1 THEN max(expires_at, ?5) ELSE ?5 END,
  ttl_ms = ?3, frame = ?4, version = version + 1, claimed = 1
WHERE resource = ?1 AND grant_id = ?2
