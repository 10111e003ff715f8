-- Creates a grant that lives p_life_ms from now on. Returns its first token.
CREATE PROCEDURE holdfast_give(IN p_id BINARY(16), IN p_res VARBINARY(1024), IN p_shared TINYINT,
  IN p_limit BIGINT, IN p_tokens INT, IN p_ttl BIGINT, IN p_delay BIGINT, IN p_label VARBINARY(1024),
  IN p_life_ms BIGINT, IN p_at BIGINT, OUT p_token BIGINT)
BEGIN
  -- A range begins at a multiple of 1024, so that each token tells its range: fence.sql. The floor is
  -- read while the row is locked: the sweep that deleted this resource has raised it before.
  SELECT (GREATEST(r.last_token, (SELECT token_floor FROM holdfast_counter WHERE id = 1)) DIV 1024 + 1) * 1024
    INTO p_token FROM holdfast_resources r WHERE r.name = p_res FOR UPDATE;
  UPDATE holdfast_resources SET last_token = p_token + p_tokens - 1, used_us = p_at, held = held + 1,
      counted_us = LEAST(counted_us, p_at + (p_life_ms + p_delay) * 1000)
   WHERE name = p_res;
  INSERT INTO holdfast_fences (resource, token, tokens, shared) VALUES (p_res, p_token, p_tokens, p_shared)
    ON DUPLICATE KEY UPDATE tokens = p_tokens, shared = p_shared, refused = 0;
  INSERT INTO holdfast_grants (grant_id, resource, shared, limit_to, token, tokens, ttl_ms, delay_ms,
      expires_us, label)
    VALUES (p_id, p_res, p_shared, p_limit, p_token, p_tokens, p_ttl, p_delay,
      p_at + p_life_ms * 1000, p_label);
END
