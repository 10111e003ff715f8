-- Gives holders, waiters as mode and label in hex, ms for which a lock-delay keeps it closed
CREATE FUNCTION holdfast_view(p_res VARBINARY(1024), p_at BIGINT)
RETURNS LONGTEXT CHARACTER SET ascii READS SQL DATA
BEGIN
  DECLARE v_waiters LONGTEXT CHARACTER SET ascii;
  DECLARE v_found INT;
  DECLARE v_closed BIGINT;
  -- Looked for first: sorting takes a temporary table on disk, even for no rows.
  SELECT COUNT(*) INTO v_found FROM (SELECT 1 FROM holdfast_waiters FORCE INDEX (line)
    WHERE resource = p_res LIMIT 1) w;
  IF v_found > 0 THEN
    SELECT GROUP_CONCAT(CONCAT('["', IF(shared, 's', 'x'), '","', HEX(label), '"]') ORDER BY place)
      INTO v_waiters FROM holdfast_waiters FORCE INDEX (line)
     WHERE resource = p_res AND heard_us > p_at - 10000000;
  END IF;
  SELECT GREATEST(0, COALESCE(MAX(CEIL((expires_us + delay_ms * 1000 - p_at) / 1000)), 0)) INTO v_closed
    FROM holdfast_grants FORCE INDEX (holders) WHERE resource = p_res AND expires_us <= p_at;
  RETURN CONCAT('[', holdfast_holders(p_res, 1000000, p_at), ',[', COALESCE(v_waiters, ''), '],',
    v_closed, ']');
END
