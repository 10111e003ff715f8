INSERT INTO grants (resource, grant_id, mode, share_limit, token, tokens, ttl_ms, lock_delay_ms,
  label, peer, frame, expires_at, version, claimed, revoked, token_index, last_order)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0, ?13, 0, 0, 0)
