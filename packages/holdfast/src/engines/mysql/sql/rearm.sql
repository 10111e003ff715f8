-- A repeat of the claim, or the first word of a waiter that was let in: a fresh life, which takes
-- nothing back from a renewal for longer. Gives granted token tokens ttl, or null where there is no
-- such grant; gone revoked where that is so.
CREATE PROCEDURE holdfast_rearm(IN p_res VARBINARY(1024), IN p_id BINARY(16), IN p_at BIGINT,
  OUT p_answer LONGTEXT CHARACTER SET ascii)
BEGIN
  SET p_answer = NULL;
  SELECT IF(revoked, '["gone","revoked"]', CONCAT('["granted","', token, '",', tokens, ',', ttl_ms, ']'))
    INTO p_answer FROM holdfast_grants
   WHERE grant_id = p_id AND resource = p_res AND expires_us > p_at FOR UPDATE;
  UPDATE holdfast_grants SET expires_us = GREATEST(expires_us, p_at + ttl_ms * 1000)
   WHERE grant_id = p_id AND resource = p_res AND expires_us > p_at AND revoked = 0;
  CALL holdfast_foreign_keep(CONCAT('[{"id":"', HEX(p_id), '"}]'));
END
