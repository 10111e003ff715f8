-- Takes an exclusive claim until the caller's transaction ends. Returns a token, or null if somebody
-- holds the resource, waits for it, or has locked it in another transaction. The session is the
-- caller's, so every setting that is changed here is restored. After an error transaction.ts restores
-- it, from the user variables that remember it: a kill between two statements runs no handler. Locks
-- are released only when the transaction ends. In the default isolation level, a locking read of
-- several rows, or of none, also blocks inserts beside them. So only rows that are known to exist are
-- locked, each by its whole primary key. Everything else is a plain read, and a SELECT … INTO, because
-- a read inside IF or SET locks what it finds. A plain read shows the snapshot of the transaction: it
-- counts if nobody had a turn since then; otherwise the row of the resource decides.
CREATE PROCEDURE holdfast_claim_here(IN p_res VARBINARY(1024), IN p_wait_s INT)
proc: BEGIN
  DECLARE v_at, v_token, v_floor, v_ends, v_held, v_heard, v_used BIGINT DEFAULT 0;
  DECLARE v_seen BIGINT DEFAULT -1;
  DECLARE v_busy INT DEFAULT 0;
  DECLARE v_id BINARY(16);
  DECLARE v_before INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_stamp DOUBLE DEFAULT @@SESSION.timestamp;
  DECLARE EXIT HANDLER FOR 1205
  BEGIN
    SET SESSION innodb_lock_wait_timeout = v_before, @holdfast_lock_wait = NULL;
    /*M!110602 SET SESSION innodb_snapshot_isolation =
      COALESCE(@holdfast_snapshot, @@SESSION.innodb_snapshot_isolation), @holdfast_snapshot = NULL; */
    SELECT NULL AS answer;
  END;
  CALL holdfast_foreign_refuse();
  -- A frozen clock (thaw.sql) belongs to the caller, as the session does: the claim is refused, and the
  -- clock stays as it is.
  IF @@SESSION.timestamp = v_stamp THEN
    DO SLEEP(0.001);
    IF @@SESSION.timestamp = v_stamp THEN
      SIGNAL SQLSTATE '45065' SET MESSAGE_TEXT = 'the clock of this session stands';
    END IF;
  END IF;
  SET v_at = holdfast_now_us(UTC_TIMESTAMP(6));
  SELECT used_us INTO v_seen FROM holdfast_resources WHERE name = p_res;
  -- If somebody is known to hold or wait, nothing is locked: a lock would keep the holder from its
  -- release.
  SELECT COUNT(*) INTO v_busy FROM holdfast_grants FORCE INDEX (holders)
   WHERE resource = p_res AND expires_us + delay_ms * 1000 > v_at;
  IF v_busy = 0 THEN
    SELECT COUNT(*) INTO v_busy FROM holdfast_waiters FORCE INDEX (line)
     WHERE resource = p_res AND heard_us > v_at - 3000000;
  END IF;
  IF v_busy > 0 THEN
    SELECT NULL AS answer;
    LEAVE proc;
  END IF;
  SET @holdfast_lock_wait = v_before, SESSION innodb_lock_wait_timeout = p_wait_s;
  -- From 11.6.2 on, MariaDB by default rolls back a transaction that changes a row which was changed
  -- since its snapshot. Here the row itself decides, and nobody overwrites what it has not read.
  /*M!110602 SET @holdfast_snapshot = @@SESSION.innodb_snapshot_isolation,
    SESSION innodb_snapshot_isolation = 0; */
  INSERT INTO holdfast_resources (name, used_us) VALUES (p_res, 0)
    ON DUPLICATE KEY UPDATE used_us = holdfast_resources.used_us + 1;
  SELECT used_us, held, heard_us, last_token INTO v_used, v_held, v_heard, v_token
    FROM holdfast_resources WHERE name = p_res FOR UPDATE;
  SET v_at = holdfast_now_us(UTC_TIMESTAMP(6));
  IF v_used <> v_seen + 1 THEN
    SET v_busy = v_held > 0 OR v_heard > v_at - 3000000;
  END IF;
  -- The remaining grants are over, unless they were renewed since.
  WHILE v_held > 0 AND v_busy = 0 DO
    SET v_id = NULL;
    SELECT grant_id, token INTO v_id, v_floor FROM holdfast_grants FORCE INDEX (holders)
     WHERE resource = p_res LIMIT 1;
    IF v_id IS NOT NULL THEN
      SELECT expires_us + delay_ms * 1000 INTO v_ends FROM holdfast_grants
       WHERE grant_id = v_id FOR UPDATE;
    END IF;
    IF v_id IS NULL OR v_ends > v_at THEN SET v_busy = 1;
    ELSE
      DELETE FROM holdfast_fences WHERE resource = p_res AND token = v_floor;
      DELETE FROM holdfast_grants WHERE grant_id = v_id;
      SET v_held = v_held - 1;
    END IF;
  END WHILE;
  IF v_busy > 0 THEN
    SET v_token = NULL;
    UPDATE holdfast_resources SET held = v_held, counted_us = 0 WHERE name = p_res;
  ELSE
    -- A new row begins above all tokens of deleted resources.
    SET v_floor = 0;
    IF v_token = 0 THEN
      SELECT token_floor INTO v_floor FROM holdfast_counter WHERE id = 1 LOCK IN SHARE MODE;
    END IF;
    SET v_token = GREATEST(v_token, v_floor) + 1;
    UPDATE holdfast_resources SET last_token = v_token, used_us = v_at, held = 0, counted_us = 0
     WHERE name = p_res;
  END IF;
  SET SESSION innodb_lock_wait_timeout = v_before, @holdfast_lock_wait = NULL;
  /*M!110602 SET SESSION innodb_snapshot_isolation = @holdfast_snapshot, @holdfast_snapshot = NULL; */
  SELECT v_token AS answer;
END
