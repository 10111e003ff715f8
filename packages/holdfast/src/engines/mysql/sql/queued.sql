-- The position of a waiter. Near the head those ahead of it are counted. Further back, waiters that
-- gave up in between count too, because counting costs as much as there are rows.
-- p_tells  whether every waiter gets the list of holders, or the head alone
-- Gives queued position nextMs holders, or null if it does not wait
CREATE FUNCTION holdfast_queued(p_res VARBINARY(1024), p_id BINARY(16), p_tells TINYINT, p_at BIGINT)
RETURNS LONGTEXT CHARACTER SET ascii READS SQL DATA
BEGIN
  DECLARE v_place, v_nth, v_joined, v_head, v_ahead, v_fresh BIGINT DEFAULT NULL;
  SELECT place, nth, joined_us INTO v_place, v_nth, v_joined FROM holdfast_waiters
   WHERE grant_id = p_id AND resource = p_res;
  IF v_place IS NULL THEN RETURN NULL; END IF;
  SELECT nth INTO v_head FROM holdfast_waiters FORCE INDEX (line)
   WHERE resource = p_res ORDER BY place LIMIT 1;
  SET v_ahead = v_nth - v_head, v_fresh = v_nth - v_head;
  IF v_ahead < 50 THEN
    SELECT COALESCE(SUM(heard_us > p_at - 10000000), 0), COALESCE(SUM(heard_us > p_at - 3000000), 0)
      INTO v_ahead, v_fresh
      FROM holdfast_waiters FORCE INDEX (line) WHERE resource = p_res AND place < v_place;
  END IF;
  RETURN CONCAT('["queued",', v_ahead, ',', holdfast_next_ms(p_res, v_fresh, v_joined, p_at), ',',
    IF(p_tells OR v_fresh = 0, holdfast_holders(p_res, 16, p_at), '[]'), ']');
END
