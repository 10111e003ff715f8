-- Gives a grant a new life, counted in the caller's frame, and makes it a claimed one. A repeat may
-- come after a renewal for longer, and must not take back what that one gave.
UPDATE grants SET
  expires_at = CASE WHEN frame = ?4 AND claimed = 1 THEN max(expires_at, ?5) ELSE ?5 END,
  ttl_ms = ?3, frame = ?4, version = version + 1, claimed = 1
WHERE resource = ?1 AND grant_id = ?2
