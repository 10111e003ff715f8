-- Answers a repeated claim, or the first heartbeat of a waiter that was let in: the grant gets a fresh
-- ttl, and keeps a longer one that a renewal gave it. Gives granted token tokens ttl; null if there is
-- no such grant; gone why if it was revoked, left to end by itself, or lost in another program's table.
CREATE PROCEDURE holdfast_rearm(IN p_res VARBINARY(1024), IN p_id BINARY(16), IN p_at BIGINT,
  OUT p_answer LONGTEXT CHARACTER SET ascii)
BEGIN
  DECLARE v_refs VARCHAR(64) CHARACTER SET ascii DEFAULT CONCAT('[{"id":"', HEX(p_id), '"}]');
  SET p_answer = NULL;
  SELECT CASE
      WHEN is_left THEN '["gone","unknown"]'
      WHEN revoked THEN '["gone","revoked"]'
      ELSE CONCAT('["granted","', token, '",', tokens, ',', ttl_ms, ']') END
    INTO p_answer FROM holdfast_grants
   WHERE grant_id = p_id AND resource = p_res AND expires_us > p_at FOR UPDATE;
  IF p_answer LIKE '["granted"%' THEN
    CALL holdfast_foreign_lock(v_refs);
    UPDATE holdfast_grants SET expires_us = GREATEST(expires_us, p_at + ttl_ms * 1000)
     WHERE grant_id = p_id AND holdfast_foreign_mine(p_res, p_id);
    CALL holdfast_foreign_keep(v_refs);
    IF NOT holdfast_foreign_mine(p_res, p_id) THEN SET p_answer = '["gone","expired"]'; END IF;
  END IF;
END
