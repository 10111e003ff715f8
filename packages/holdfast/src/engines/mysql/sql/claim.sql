-- One claim: granted or busy; with enqueue, queued until its turn.
-- p_op  verb acquire|enqueue, name and label in hex, id, owner, shared, limit (0: none), ttl, delay,
--       tokens
-- Gives granted token tokens ttl | busy retryMs holders | queued position nextMs holders
--       | gone why | limit inUse
CREATE PROCEDURE holdfast_claim(IN p_op LONGTEXT CHARACTER SET ascii, IN p_at BIGINT,
  OUT p_answer LONGTEXT CHARACTER SET ascii)
proc: BEGIN
  DECLARE v_res VARBINARY(1024) DEFAULT UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.name')));
  DECLARE v_id BINARY(16) DEFAULT UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.id')));
  DECLARE v_label VARBINARY(1024) DEFAULT UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.label')));
  DECLARE v_shared TINYINT DEFAULT JSON_EXTRACT(p_op, '$.shared');
  DECLARE v_tokens INT DEFAULT JSON_EXTRACT(p_op, '$.tokens');
  DECLARE v_limit BIGINT DEFAULT JSON_EXTRACT(p_op, '$.limit');
  DECLARE v_ttl BIGINT DEFAULT JSON_EXTRACT(p_op, '$.ttl');
  DECLARE v_delay BIGINT DEFAULT JSON_EXTRACT(p_op, '$.delay');
  DECLARE v_waits TINYINT DEFAULT JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.verb')) = 'enqueue';
  DECLARE v_told LONGTEXT CHARACTER SET ascii;
  DECLARE v_other, v_token BIGINT DEFAULT NULL;
  DECLARE v_held, v_writers, v_nth, v_found BIGINT DEFAULT 0;
  DECLARE v_taken TINYINT DEFAULT 0;
  -- Reads are SELECT … INTO: a read inside IF or SET would lock what it finds, and make renewals wait.
  SELECT COUNT(*) INTO v_found FROM holdfast_tombstones WHERE grant_id = v_id AND until_us > p_at;
  IF v_found > 0 THEN
    SET p_answer = '["gone","unknown"]';
    LEAVE proc;
  END IF;
  CALL holdfast_rearm(v_res, v_id, p_at, p_answer);
  IF p_answer IS NOT NULL THEN LEAVE proc; END IF;
  SELECT COUNT(*) INTO v_found FROM holdfast_waiters WHERE grant_id = v_id AND resource = v_res;
  IF v_found > 0 THEN
    IF v_waits THEN
      -- Counts as a heartbeat, and looks for its turn.
      UPDATE holdfast_waiters SET heard_us = p_at WHERE grant_id = v_id;
      UPDATE holdfast_resources SET heard_us = p_at WHERE name = v_res;
      CALL holdfast_promote(v_res, -1, NULL, p_at, v_told);
      CALL holdfast_rearm(v_res, v_id, p_at, p_answer);
      IF p_answer IS NULL THEN SELECT holdfast_queued(v_res, v_id, 1, p_at) INTO p_answer; END IF;
    ELSE SELECT CONCAT('["busy",1000,', holdfast_holders(v_res, 16, p_at), ']') INTO p_answer;
    END IF;
    LEAVE proc;
  END IF;
  CALL holdfast_promote(v_res, -1, NULL, p_at, v_told);
  IF v_shared THEN
    -- All living shared claims have the same limit, so any of them tells it. The latest come first,
    -- because they are most likely alive.
    SELECT limit_to INTO v_other FROM holdfast_grants FORCE INDEX (holders)
     WHERE resource = v_res AND shared = 1 AND expires_us > p_at ORDER BY token DESC LIMIT 1;
    IF v_other IS NULL THEN
      SELECT limit_to INTO v_other FROM holdfast_waiters FORCE INDEX (sharing)
       WHERE resource = v_res AND shared = 1 AND heard_us > p_at - 10000000 LIMIT 1;
    END IF;
    IF v_other <> v_limit THEN
      SET p_answer = CONCAT('["limit",', v_other, ']');
      LEAVE proc;
    END IF;
  END IF;
  CALL holdfast_holding(v_res, p_at, v_held, v_writers);
  SELECT COUNT(*) INTO v_found FROM holdfast_grants WHERE grant_id = v_id;
  IF v_found > 0 THEN
    -- Its own grant is over but still exists, in its lock-delay.
    SET p_answer = '["gone","expired"]';
    LEAVE proc;
  END IF;
  IF v_held = 0 OR (v_shared AND v_writers = 0 AND (v_limit = 0 OR v_held < v_limit)) THEN
    SELECT COUNT(*) INTO v_found FROM (SELECT 1 FROM holdfast_waiters FORCE INDEX (line)
      WHERE resource = v_res AND heard_us > p_at - 3000000 LIMIT 1) w;
    IF v_found = 0 THEN
      CALL holdfast_foreign_take(v_res, v_id, v_label, p_at + (v_ttl + v_delay) * 1000, v_taken);
    END IF;
    IF v_taken THEN
      CALL holdfast_give(v_id, v_res, v_shared, v_limit, v_tokens, v_ttl, v_delay, v_label, v_ttl,
        p_at, v_token);
      SET p_answer = CONCAT('["granted","', v_token, '",', v_tokens, ',', v_ttl, ']');
      LEAVE proc;
    END IF;
  END IF;
  IF NOT v_waits THEN
    SELECT CONCAT('["busy",', holdfast_next_ms(v_res, 0, p_at, p_at), ',',
      holdfast_holders(v_res, 16, p_at), ']') INTO p_answer;
    LEAVE proc;
  END IF;
  SELECT nth + 1 INTO v_nth FROM holdfast_waiters FORCE INDEX (line)
   WHERE resource = v_res ORDER BY place DESC LIMIT 1;
  INSERT INTO holdfast_waiters (grant_id, resource, shared, limit_to, tokens, ttl_ms, delay_ms,
      joined_us, heard_us, owner, label, nth)
    VALUES (v_id, v_res, v_shared, v_limit, v_tokens, v_ttl, v_delay, p_at, p_at,
      UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.owner'))), v_label, v_nth);
  UPDATE holdfast_resources SET heard_us = p_at WHERE name = v_res;
  SELECT holdfast_queued(v_res, v_id, 1, p_at) INTO p_answer;
END
