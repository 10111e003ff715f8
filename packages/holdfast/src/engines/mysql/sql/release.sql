-- p_op  name in hex, id, owner, tombstone: ms for which a late claim of this id is refused
-- Gives released told | gone why
CREATE PROCEDURE holdfast_release(IN p_op LONGTEXT CHARACTER SET ascii, IN p_at BIGINT,
  OUT p_answer LONGTEXT CHARACTER SET ascii)
BEGIN
  DECLARE v_res VARBINARY(1024) DEFAULT UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.name')));
  DECLARE v_id BINARY(16) DEFAULT UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.id')));
  DECLARE v_tombstone BIGINT DEFAULT JSON_EXTRACT(p_op, '$.tombstone');
  DECLARE v_done TINYINT;
  DECLARE v_told LONGTEXT CHARACTER SET ascii;
  IF v_tombstone > 0 THEN
    INSERT INTO holdfast_tombstones VALUES (v_id, p_at + v_tombstone * 1000)
      ON DUPLICATE KEY UPDATE until_us = GREATEST(until_us, p_at + v_tombstone * 1000);
  END IF;
  CALL holdfast_finish(v_res, v_id, UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.owner'))), 0, p_at,
    v_done, v_told);
  IF v_done THEN SET p_answer = CONCAT('["released",[', v_told, ']]');
  ELSE SELECT holdfast_why_gone(v_res, v_id, p_at) INTO p_answer;
  END IF;
END
