-- Removes a grant or a waiter, and grants to the waiters that become eligible. Returns whether there
-- was one, and what promote reports. p_forced: also removes a grant that its holder left, which
-- otherwise ends by time alone.
CREATE PROCEDURE holdfast_finish(IN p_res VARBINARY(1024), IN p_id BINARY(16),
  IN p_owner BINARY(8), IN p_forced TINYINT, IN p_at BIGINT, OUT p_done TINYINT, OUT p_told LONGTEXT CHARACTER SET ascii)
BEGIN
  DECLARE v_first BIGINT DEFAULT NULL;
  SELECT token INTO v_first FROM holdfast_grants
   WHERE grant_id = p_id AND resource = p_res AND expires_us > p_at AND (is_left = 0 OR p_forced)
     FOR UPDATE;
  SET p_done = v_first IS NOT NULL;
  IF p_done THEN
    DELETE FROM holdfast_fences WHERE resource = p_res AND token = v_first;
    DELETE FROM holdfast_grants WHERE grant_id = p_id;
    UPDATE holdfast_resources SET held = held - 1, counted_us = IF(held > 16, counted_us, 0)
     WHERE name = p_res;
    CALL holdfast_foreign_free(p_res, p_id, p_at);
  ELSE
    DELETE FROM holdfast_waiters WHERE grant_id = p_id AND resource = p_res;
    SET p_done = ROW_COUNT() > 0;
  END IF;
  IF p_done THEN CALL holdfast_promote(p_res, -1, p_owner, p_at, p_told); END IF;
END
