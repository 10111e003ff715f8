-- Takes up the grants that others made for this engine's waiters, each with a full life from now on.
-- One whose claim window is over can still be taken: while its row stands, nobody else was let in.
UPDATE grants SET frame = ?2, expires_at = ?3 + ttl_ms, version = version + 1, claimed = 1
WHERE peer = ?1 AND claimed = 0 AND revoked = 0 RETURNING *
