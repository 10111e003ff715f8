-- Carries out operations one after the other, in one transaction.
-- p_ops     array of what claim, release, withdraw and revoke take, each with its verb. No value in it has
--           a brace: names and labels are hexadecimal digits
-- p_wait_s  how long to wait for other transactions that have locked the same resources
-- p_keep_ms how long unused rows are kept
-- Gives an array with an answer for each operation
CREATE PROCEDURE holdfast_run(IN p_ops LONGTEXT CHARACTER SET ascii, IN p_wait_s INT,
  IN p_keep_ms BIGINT)
BEGIN
  DECLARE v_i, v_to INT DEFAULT 0;
  DECLARE v_at BIGINT;
  DECLARE v_op, v_answer, v_answers LONGTEXT CHARACTER SET ascii;
  DECLARE v_before INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_zone VARCHAR(64) DEFAULT @@SESSION.time_zone;
  DECLARE v_concat BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
  DECLARE v_stamp DOUBLE DEFAULT @@SESSION.timestamp;
  DECLARE v_frozen DOUBLE DEFAULT NULL;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK AND NO CHAIN NO RELEASE;
    SET SESSION innodb_lock_wait_timeout = v_before, SESSION time_zone = v_zone,
      SESSION group_concat_max_len = v_concat;
    IF v_frozen IS NOT NULL THEN SET SESSION timestamp = v_frozen; END IF;
    RESIGNAL;
  END;
  SET SESSION innodb_lock_wait_timeout = p_wait_s, SESSION time_zone = @@GLOBAL.time_zone,
    SESSION group_concat_max_len = 16777216;
  IF @@SESSION.timestamp = v_stamp THEN CALL holdfast_thaw(v_stamp, v_frozen); END IF;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  CALL holdfast_lock_resources(p_ops);
  -- Read after the locks are taken: their last owner may have acted after we began.
  SET v_at = holdfast_now_us(UTC_TIMESTAMP(6)), v_answers = '';
  -- Operations are cut out at the brace that ends each: JSON_EXTRACT of the n-th reads all those before
  -- it.
  WHILE LOCATE('}', p_ops, v_to + 1) > 0 DO
    SET v_op = SUBSTRING(p_ops, v_to + 2, LOCATE('}', p_ops, v_to + 1) - v_to - 1),
      v_to = LOCATE('}', p_ops, v_to + 1);
    CASE JSON_UNQUOTE(JSON_EXTRACT(v_op, '$.verb'))
      WHEN 'release' THEN CALL holdfast_release(v_op, v_at, v_answer);
      WHEN 'withdraw' THEN CALL holdfast_withdraw(v_op, v_at, v_answer);
      WHEN 'revoke' THEN CALL holdfast_revoke(v_op, v_at, v_answer);
      ELSE CALL holdfast_claim(v_op, v_at, v_answer);
    END CASE;
    SET v_answers = CONCAT(v_answers, IF(v_i = 0, '', ','), v_answer), v_i = v_i + 1;
  END WHILE;
  COMMIT AND NO CHAIN NO RELEASE;
  -- Looks at no fewer resources than operations can have created since the last sweep.
  IF RAND() < 0.02 * v_i THEN
    BEGIN
      -- The operations are committed by now, so a failing sweep is ignored.
      DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK AND NO CHAIN NO RELEASE;
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
      START TRANSACTION;
      CALL holdfast_sweep(v_at, p_keep_ms, GREATEST(50, v_i));
      COMMIT AND NO CHAIN NO RELEASE;
    END;
  END IF;
  IF v_frozen IS NOT NULL THEN SET SESSION timestamp = v_frozen; END IF;
  SET SESSION innodb_lock_wait_timeout = v_before, SESSION time_zone = v_zone,
    SESSION group_concat_max_len = v_concat;
  SELECT CONCAT('[', v_answers, ']') AS answer;
END
