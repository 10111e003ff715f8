-- Gives gone why
CREATE FUNCTION holdfast_why_gone(p_res VARBINARY(1024), p_id BINARY(16), p_at BIGINT)
RETURNS VARCHAR(40) CHARACTER SET ascii READS SQL DATA
BEGIN
  DECLARE v_why VARCHAR(10) CHARACTER SET ascii DEFAULT NULL;
  SELECT IF(revoked AND expires_us > p_at, 'revoked', 'expired') INTO v_why FROM holdfast_grants
   WHERE grant_id = p_id AND resource = p_res;
  IF v_why IS NULL THEN
    SELECT IF(COUNT(*) > 0, 'replaced', 'expired') INTO v_why FROM (
      SELECT 1 FROM holdfast_grants FORCE INDEX (holders) WHERE resource = p_res LIMIT 1) g;
  END IF;
  RETURN CONCAT('["gone","', v_why, '"]');
END
