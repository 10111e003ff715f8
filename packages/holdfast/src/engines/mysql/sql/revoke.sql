-- p_op  name in hex, token, force
-- Only the token in use can be revoked: a holder with an earlier token of the grant has passed it on.
-- Gives revoked | gone
CREATE PROCEDURE holdfast_revoke(IN p_op LONGTEXT CHARACTER SET ascii, IN p_at BIGINT,
  OUT p_answer LONGTEXT CHARACTER SET ascii)
BEGIN
  DECLARE v_res VARBINARY(1024) DEFAULT UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.name')));
  DECLARE v_token BIGINT DEFAULT JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.token'));
  DECLARE v_id BINARY(16) DEFAULT NULL;
  DECLARE v_first BIGINT;
  DECLARE v_done TINYINT;
  DECLARE v_told LONGTEXT CHARACTER SET ascii;
  SELECT g.grant_id, g.token INTO v_id, v_first FROM (
    SELECT grant_id, token, token_index, expires_us FROM holdfast_grants FORCE INDEX (holders)
     WHERE resource = v_res AND token <= v_token ORDER BY token DESC LIMIT 1) g
   WHERE g.expires_us > p_at AND g.token + g.token_index = v_token;
  SET p_answer = IF(v_id IS NULL, '["gone"]', '["revoked"]');
  IF v_id IS NOT NULL AND JSON_EXTRACT(p_op, '$.force') = 1 THEN
    CALL holdfast_finish(v_res, v_id, NULL, 1, p_at, v_done, v_told);
  ELSEIF v_id IS NOT NULL THEN
    UPDATE holdfast_grants SET revoked = 1 WHERE grant_id = v_id;
    -- A later token of the grant belongs to another holder, to whom the lease was passed on.
    UPDATE holdfast_fences SET refused = v_token WHERE resource = v_res AND token = v_first;
  END IF;
END
