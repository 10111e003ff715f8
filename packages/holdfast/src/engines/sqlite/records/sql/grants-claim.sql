-- Claims the grants that other processes made for this engine's waiters, each with its full ttl
-- from now. A grant whose claim window is over can still be claimed: while its row exists, it
-- blocks others.
UPDATE grants SET frame = ?2, expires_at = ?3 + ttl_ms, version = version + 1, claimed = 1
WHERE peer = ?1 AND claimed = 0 AND revoked = 0 RETURNING *
