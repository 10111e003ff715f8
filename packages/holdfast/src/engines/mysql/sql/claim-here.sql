-- Takes an exclusive claim for as long as a transaction of the caller's lasts. Gives a token, or null
-- where somebody holds the resource, waits for it, or has it in another transaction.
-- The session is the caller's: what is set in it is put back. After an error transaction.ts does it, by
-- the variable that remembers: a kill between two statements runs no handler.
-- Reads that decide are locking ones: any other would see the snapshot of the caller's transaction.
CREATE PROCEDURE holdfast_claim_here(IN p_res VARBINARY(1024), IN p_wait_s INT)
proc: BEGIN
  DECLARE v_at, v_token, v_floor BIGINT DEFAULT 0;
  DECLARE v_before INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_stamp DOUBLE DEFAULT @@SESSION.timestamp;
  DECLARE EXIT HANDLER FOR 1205
  BEGIN
    SET SESSION innodb_lock_wait_timeout = v_before, @holdfast_lock_wait = NULL;
    SELECT NULL AS answer;
  END;
  -- A clock that stands (thaw.sql) is the caller's, and so is the session: it is refused, not set.
  IF @@SESSION.timestamp = v_stamp THEN
    DO SLEEP(0.001);
    IF @@SESSION.timestamp = v_stamp THEN
      SIGNAL SQLSTATE '45065' SET MESSAGE_TEXT = 'the clock of this session stands';
    END IF;
  END IF;
  -- A lock is not given back before the transaction ends, so it is better not taken where somebody
  -- is known to hold the resource: it would keep the holder from its release.
  SET v_at = holdfast_now_us(UTC_TIMESTAMP(6));
  IF EXISTS (SELECT 1 FROM holdfast_grants
              WHERE resource = p_res AND expires_us + delay_ms * 1000 > v_at) THEN
    SELECT NULL AS answer;
    LEAVE proc;
  END IF;
  SET @holdfast_lock_wait = v_before, SESSION innodb_lock_wait_timeout = p_wait_s;
  INSERT INTO holdfast_resources (name, used_us) VALUES (p_res, 0)
    ON DUPLICATE KEY UPDATE used_us = holdfast_resources.used_us + 1;
  SET v_at = holdfast_now_us(UTC_TIMESTAMP(6));
  DELETE FROM holdfast_grants WHERE resource = p_res AND expires_us + delay_ms * 1000 <= v_at;
  SELECT (SELECT COUNT(*) FROM holdfast_grants FORCE INDEX (fence)
           WHERE resource = p_res LOCK IN SHARE MODE)
       + (SELECT COUNT(*) FROM holdfast_waiters
           WHERE resource = p_res AND heard_us > v_at - 3000000 LOCK IN SHARE MODE) INTO v_token;
  IF v_token > 0 THEN
    SET v_token = NULL;
  ELSE
    SELECT last_token INTO v_token FROM holdfast_resources WHERE name = p_res FOR UPDATE;
    -- A row that was just made begins above all that were forgotten.
    IF v_token = 0 THEN
      SELECT token_floor INTO v_floor FROM holdfast_counter WHERE id = 1 LOCK IN SHARE MODE;
    END IF;
    SET v_token = GREATEST(v_token, v_floor) + 1;
    UPDATE holdfast_resources SET last_token = v_token, used_us = v_at WHERE name = p_res;
  END IF;
  SET SESSION innodb_lock_wait_timeout = v_before, @holdfast_lock_wait = NULL;
  SELECT v_token AS answer;
END
