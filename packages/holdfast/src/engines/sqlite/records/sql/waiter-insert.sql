INSERT INTO waiters (resource, grant_id, mode, share_limit, tokens, ttl_ms, lock_delay_ms, label, peer)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
