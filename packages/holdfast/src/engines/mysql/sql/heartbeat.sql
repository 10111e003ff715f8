-- Waiters show that they are there.
-- p_beats array of objects with name in hex and id; p_batch: a number that no other batch has
-- Gives an array with, for each, its number from 1 on, and granted token tokens ttl | queued position
--       nextMs holders | unknown
-- The answers are read before the commit, under the locks: after it, a release of another session may
-- have let a waiter in for one claim window, and the answer would promise it a whole ttl. They are sent
-- after the commit: what is told is on the disk, and a client that does not read holds no lock.
CREATE PROCEDURE holdfast_heartbeat(IN p_beats LONGTEXT CHARACTER SET ascii, IN p_batch BIGINT,
  IN p_wait_s INT)
BEGIN
  DECLARE v_at BIGINT;
  DECLARE v_done TINYINT DEFAULT 0;
  DECLARE v_res VARBINARY(1024);
  DECLARE v_told, v_answers LONGTEXT CHARACTER SET ascii;
  DECLARE v_before INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_zone VARCHAR(64) DEFAULT @@SESSION.time_zone;
  DECLARE v_concat BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
  -- Those that no writer closes. A writer whose time is over closes nothing.
  DECLARE v_stamp DOUBLE DEFAULT @@SESSION.timestamp;
  DECLARE v_frozen DOUBLE DEFAULT NULL;
  DECLARE open_ones CURSOR FOR
    SELECT DISTINCT r.name FROM holdfast_resources r
      JOIN JSON_TABLE(p_beats, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$.name')) b
        ON r.name = UNHEX(b.name)
     WHERE NOT EXISTS (SELECT 1 FROM holdfast_grants g
       WHERE g.resource = r.name AND g.shared = 0 AND g.expires_us + g.delay_ms * 1000 > v_at)
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
  UPDATE holdfast_waiters w
    JOIN JSON_TABLE(p_beats, '$[*]'
      COLUMNS (name VARCHAR(2048) PATH '$.name', id CHAR(32) PATH '$.id')) b
      ON w.grant_id = UNHEX(b.id) AND w.resource = UNHEX(b.name)
    SET w.heard_us = v_at, w.batch = p_batch;
  DELETE w FROM holdfast_waiters w
    JOIN (SELECT DISTINCT UNHEX(a.name) AS name
            FROM JSON_TABLE(p_beats, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$.name')) a) b
      ON w.resource = b.name
   WHERE w.heard_us < v_at - 10000000;
  OPEN open_ones;
  promotions: LOOP
    FETCH open_ones INTO v_res;
    IF v_done THEN LEAVE promotions; END IF;
    CALL holdfast_promote(v_res, p_batch, NULL, v_at, v_told);
    SET v_done = 0;
  END LOOP;
  CLOSE open_ones;
  CALL holdfast_foreign_lock(p_beats);
  UPDATE holdfast_grants g
    JOIN JSON_TABLE(p_beats, '$[*]'
      COLUMNS (name VARCHAR(2048) PATH '$.name', id CHAR(32) PATH '$.id')) b
      ON g.grant_id = UNHEX(b.id) AND g.resource = UNHEX(b.name)
    SET g.expires_us = GREATEST(g.expires_us, v_at + g.ttl_ms * 1000)
   WHERE g.expires_us > v_at AND g.revoked = 0 AND g.is_left = 0
     AND holdfast_foreign_mine(g.resource, g.grant_id);
  CALL holdfast_foreign_keep(p_beats);
  SELECT GROUP_CONCAT(CONCAT('[', b.n, ',', CASE
      WHEN g.grant_id IS NOT NULL
        THEN CONCAT('["granted","', g.token, '",', g.tokens, ',', g.ttl_ms, ']')
      WHEN l.grant_id IS NOT NULL
        THEN CONCAT('["queued",', l.position, ',',
          holdfast_next_ms(l.resource, l.fresh, l.joined_us, v_at), ',',
          IF(l.fresh = 0, holdfast_holders(l.resource, v_at), '[]'), ']')
      ELSE '["unknown"]' END, ']')) INTO v_answers
    FROM JSON_TABLE(p_beats, '$[*]' COLUMNS (n FOR ORDINALITY,
      name VARCHAR(2048) PATH '$.name', id CHAR(32) PATH '$.id')) b
    LEFT JOIN holdfast_grants g ON g.grant_id = UNHEX(b.id) AND g.resource = UNHEX(b.name)
      AND g.expires_us > v_at AND g.revoked = 0 AND g.is_left = 0
      AND holdfast_foreign_mine(g.resource, g.grant_id)
    LEFT JOIN (
      SELECT w.grant_id, w.resource, w.joined_us,
          ROW_NUMBER() OVER (PARTITION BY w.resource ORDER BY w.place) - 1 AS position,
          SUM(w.heard_us > v_at - 3000000) OVER (PARTITION BY w.resource ORDER BY w.place)
            - (w.heard_us > v_at - 3000000) AS fresh
        FROM holdfast_waiters w
       WHERE w.resource IN (SELECT UNHEX(a.name)
         FROM JSON_TABLE(p_beats, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$.name')) a)) l
      ON l.grant_id = UNHEX(b.id) AND l.resource = UNHEX(b.name);
  COMMIT AND NO CHAIN NO RELEASE;
  IF v_frozen IS NOT NULL THEN SET SESSION timestamp = v_frozen; END IF;
  SET SESSION innodb_lock_wait_timeout = v_before, SESSION time_zone = v_zone,
    SESSION group_concat_max_len = v_concat;
  SELECT CONCAT('[', COALESCE(v_answers, ''), ']') AS answer;
END
