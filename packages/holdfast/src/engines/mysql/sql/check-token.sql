CREATE PROCEDURE holdfast_check_token(IN p_res VARBINARY(1024), IN p_shared TINYINT, IN p_token BIGINT)
BEGIN
  SELECT EXISTS (SELECT 1 FROM holdfast_grants
    WHERE resource = p_res AND shared = p_shared AND revoked = 0
      AND expires_us > holdfast_now_us(UTC_TIMESTAMP(6))
      AND p_token >= token AND p_token < token + tokens) AS answer;
END
