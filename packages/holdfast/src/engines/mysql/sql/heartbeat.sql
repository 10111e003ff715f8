-- Heartbeats of waiters.
-- p_beats array of objects with name in hex and id; p_batch: a number that no other batch has
-- Gives an array with, for each, its number from 1 on, and granted token tokens ttl | queued position
--       nextMs holders | unknown
-- The answers are read before the commit, under the locks. After the commit, another session's release
-- may have let a waiter in for one claim window, and the answer would promise it a whole ttl. The
-- answers are sent after the commit, so that what they say is on the disk, and a client that does not
-- read holds no lock.
CREATE PROCEDURE holdfast_heartbeat(IN p_beats LONGTEXT CHARACTER SET ascii, IN p_batch BIGINT,
  IN p_wait_s INT)
BEGIN
  DECLARE v_at, v_heard BIGINT;
  DECLARE v_done, v_open TINYINT DEFAULT 0;
  DECLARE v_res VARBINARY(1024);
  DECLARE v_told, v_answers LONGTEXT CHARACTER SET ascii;
  DECLARE v_before INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_zone VARCHAR(64) DEFAULT @@SESSION.time_zone;
  DECLARE v_concat BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
  DECLARE v_stamp DOUBLE DEFAULT @@SESSION.timestamp;
  DECLARE v_frozen DOUBLE DEFAULT NULL;
  DECLARE names CURSOR FOR
    SELECT DISTINCT r.name
      FROM JSON_TABLE(p_beats, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$.name')) b
      STRAIGHT_JOIN holdfast_resources r FORCE INDEX (PRIMARY)
        ON r.name = UNHEX(b.name)
     ORDER BY r.name;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_done = 1;
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
  CALL holdfast_lock_resources(p_beats);
  SET v_at = holdfast_now_us(UTC_TIMESTAMP(6));
  UPDATE JSON_TABLE(p_beats, '$[*]'
      COLUMNS (name VARCHAR(2048) PATH '$.name', id CHAR(32) PATH '$.id')) b
    STRAIGHT_JOIN holdfast_waiters w FORCE INDEX (PRIMARY)
      ON w.grant_id = UNHEX(b.id) AND w.resource = UNHEX(b.name)
    SET w.heard_us = v_at, w.batch = p_batch;
  UPDATE JSON_TABLE(p_beats, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$.name')) b
    STRAIGHT_JOIN holdfast_resources r FORCE INDEX (PRIMARY)
      ON r.name = UNHEX(b.name)
    SET r.heard_us = v_at;
  -- Promotes for resources that no writer holds, and for those whose head is dead. A writer whose time
  -- is over blocks nobody, and holders beside readers are readers. Done one by one: inside the cursor,
  -- MySQL would read all holders and waiters to find the first of them.
  OPEN names;
  promotions: LOOP
    FETCH names INTO v_res;
    IF v_done THEN LEAVE promotions; END IF;
    SET v_open = 1, v_heard = v_at;
    SELECT shared = 1 OR expires_us + delay_ms * 1000 <= v_at INTO v_open
      FROM holdfast_grants FORCE INDEX (holders)
     WHERE resource = v_res ORDER BY token DESC LIMIT 1;
    SELECT heard_us INTO v_heard FROM holdfast_waiters FORCE INDEX (line)
     WHERE resource = v_res ORDER BY place LIMIT 1;
    -- Dead waiters are removed when one of them reaches the head.
    IF v_heard < v_at - 10000000 THEN
      DELETE w FROM holdfast_waiters w FORCE INDEX (line)
       WHERE w.resource = v_res AND w.heard_us < v_at - 10000000;
      SET v_open = 1;
    END IF;
    IF v_open THEN CALL holdfast_promote(v_res, p_batch, NULL, v_at, v_told); END IF;
    SET v_done = 0;
  END LOOP;
  CLOSE names;
  CALL holdfast_foreign_lock(p_beats);
  UPDATE JSON_TABLE(p_beats, '$[*]'
      COLUMNS (name VARCHAR(2048) PATH '$.name', id CHAR(32) PATH '$.id')) b
    STRAIGHT_JOIN holdfast_grants g FORCE INDEX (PRIMARY)
      ON g.grant_id = UNHEX(b.id) AND g.resource = UNHEX(b.name)
    SET g.expires_us = GREATEST(g.expires_us, v_at + g.ttl_ms * 1000)
   WHERE g.expires_us > v_at AND g.revoked = 0 AND g.is_left = 0
     AND holdfast_foreign_mine(g.resource, g.grant_id);
  CALL holdfast_foreign_keep(p_beats);
  SELECT GROUP_CONCAT(CONCAT('[', b.n, ',', CASE
      WHEN g.grant_id IS NOT NULL
        THEN CONCAT('["granted","', g.token, '",', g.tokens, ',', g.ttl_ms, ']')
      ELSE COALESCE(holdfast_queued(UNHEX(b.name), UNHEX(b.id), 0, v_at), '["unknown"]')
      END, ']')) INTO v_answers
    FROM JSON_TABLE(p_beats, '$[*]' COLUMNS (n FOR ORDINALITY,
      name VARCHAR(2048) PATH '$.name', id CHAR(32) PATH '$.id')) b
    LEFT JOIN holdfast_grants g FORCE INDEX (PRIMARY) ON g.grant_id = UNHEX(b.id) AND g.resource = UNHEX(b.name)
      AND g.expires_us > v_at AND g.revoked = 0 AND g.is_left = 0
      AND holdfast_foreign_mine(g.resource, g.grant_id);
  COMMIT AND NO CHAIN NO RELEASE;
  IF v_frozen IS NOT NULL THEN SET SESSION timestamp = v_frozen; END IF;
  SET SESSION innodb_lock_wait_timeout = v_before, SESSION time_zone = v_zone,
    SESSION group_concat_max_len = v_concat;
  SELECT CONCAT('[', COALESCE(v_answers, ''), ']') AS answer;
END
