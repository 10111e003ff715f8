-- When a waiter must poll. The head polls at an interval that grows the longer it waits, and when the
-- holder's time is over. The others poll more rarely the further back they are.
CREATE FUNCTION holdfast_next_ms(p_res VARBINARY(1024), p_before BIGINT, p_joined BIGINT, p_at BIGINT)
RETURNS BIGINT READS SQL DATA
BEGIN
  DECLARE v_ends BIGINT DEFAULT NULL;
  IF p_before > 0 THEN RETURN LEAST(1000, 15 * (p_before + 1)); END IF;
  -- With many holders this is when they are counted again, which finds the expired ones.
  SELECT counted_us INTO v_ends FROM holdfast_resources WHERE name = p_res AND counted_us > p_at;
  IF v_ends IS NULL THEN
    SELECT MIN(expires_us + delay_ms * 1000) INTO v_ends
      FROM holdfast_grants FORCE INDEX (holders) WHERE resource = p_res;
  END IF;
  RETURN GREATEST(5, LEAST(100, GREATEST(12, (p_at - p_joined) DIV 50000), COALESCE(
    CEIL((v_ends - p_at) / 1000), IF(holdfast_foreign_holder(p_res, p_at) = '', 1000, 75))));
END
