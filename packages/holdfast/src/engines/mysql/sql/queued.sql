-- Gives queued position nextMs holders
CREATE PROCEDURE holdfast_queued(IN p_res VARBINARY(1024), IN p_id BINARY(16), IN p_at BIGINT,
  OUT p_answer LONGTEXT CHARACTER SET ascii)
BEGIN
  DECLARE v_place, v_joined, v_before, v_fresh BIGINT;
  SELECT place, joined_us INTO v_place, v_joined FROM holdfast_waiters WHERE grant_id = p_id;
  SELECT COUNT(*), COALESCE(SUM(heard_us > p_at - 3000000), 0) INTO v_before, v_fresh
    FROM holdfast_waiters WHERE resource = p_res AND place < v_place;
  SET p_answer = CONCAT('["queued",', v_before, ',', holdfast_next_ms(p_res, v_fresh, v_joined, p_at),
    ',', holdfast_holders(p_res, p_at), ']');
END
