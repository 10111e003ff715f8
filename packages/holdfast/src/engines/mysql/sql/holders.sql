-- Holders, for people: mode, token in use, label in hex, remaining ms, whether revoked. In no order: to
-- sort them here, or to use GROUP_CONCAT on long values, takes a temporary table on disk for every
-- answer. So a single holder, the usual case, is read without it.
-- p_most  how many at most, because nobody reads 2,000 names
CREATE FUNCTION holdfast_holders(p_res VARBINARY(1024), p_most INT, p_at BIGINT)
RETURNS LONGTEXT CHARACTER SET ascii READS SQL DATA
BEGIN
  DECLARE v_count INT;
  DECLARE v_all LONGTEXT CHARACTER SET ascii;
  SELECT COUNT(*) INTO v_count FROM (SELECT 1 FROM holdfast_grants FORCE INDEX (holders)
    WHERE resource = p_res AND expires_us > p_at LIMIT 2) g;
  IF v_count = 1 THEN
    SELECT holdfast_holder(shared, token + token_index, label, expires_us - p_at, revoked) INTO v_all
      FROM holdfast_grants FORCE INDEX (holders) WHERE resource = p_res AND expires_us > p_at LIMIT 1;
  ELSEIF v_count > 1 THEN
    SELECT GROUP_CONCAT(holdfast_holder(g.shared, g.token + g.token_index, g.label, g.expires_us - p_at,
        g.revoked)) INTO v_all
      FROM (SELECT shared, token, token_index, label, expires_us, revoked
              FROM holdfast_grants FORCE INDEX (holders)
             WHERE resource = p_res AND expires_us > p_at LIMIT p_most) g;
  END IF;
  RETURN CONCAT('[', CONCAT_WS(',', v_all, NULLIF(holdfast_foreign_holder(p_res, p_at), '')), ']');
END
-- next
CREATE FUNCTION holdfast_holder(p_shared TINYINT, p_token BIGINT, p_label VARBINARY(1024), p_left_us BIGINT,
  p_revoked TINYINT) RETURNS VARCHAR(2200) CHARACTER SET ascii DETERMINISTIC NO SQL
RETURN CONCAT('["', IF(p_shared, 's', 'x'), '","', p_token, '","', HEX(p_label), '",',
  CEIL(p_left_us / 1000), ',', p_revoked, ']')
