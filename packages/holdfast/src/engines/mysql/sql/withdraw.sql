-- p_op  name in hex, id, owner
-- Gives withdrawn told | granted token tokens ttl
CREATE PROCEDURE holdfast_withdraw(IN p_op LONGTEXT CHARACTER SET ascii, IN p_at BIGINT,
  OUT p_answer LONGTEXT CHARACTER SET ascii)
BEGIN
  DECLARE v_res VARBINARY(1024) DEFAULT UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.name')));
  DECLARE v_id BINARY(16) DEFAULT UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.id')));
  DECLARE v_told LONGTEXT CHARACTER SET ascii DEFAULT '';
  CALL holdfast_rearm(v_res, v_id, p_at, p_answer);
  IF p_answer IS NULL OR p_answer NOT LIKE '["granted"%' THEN
    -- Removes only the waiter: a withdrawal that is delivered twice must not end a grant in use.
    DELETE FROM holdfast_waiters WHERE grant_id = v_id AND resource = v_res;
    IF ROW_COUNT() > 0 THEN
      CALL holdfast_promote(v_res, -1, UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.owner'))), p_at,
        v_told);
    END IF;
    SET p_answer = CONCAT('["withdrawn",[', v_told, ']]');
  END IF;
END
