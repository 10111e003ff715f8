-- Gives gone why
CREATE FUNCTION holdfast_why_gone(p_res VARBINARY(1024), p_id BINARY(16), p_at BIGINT)
RETURNS VARCHAR(40) CHARACTER SET ascii READS SQL DATA
RETURN (SELECT CONCAT('["gone","', CASE
    WHEN COALESCE(MAX(grant_id = p_id AND revoked AND expires_us > p_at), 0) THEN 'revoked'
    WHEN COALESCE(MAX(grant_id = p_id), 0) THEN 'expired'
    WHEN COUNT(*) > 0 THEN 'replaced'
    ELSE 'expired' END, '"]')
  FROM holdfast_grants WHERE resource = p_res)
