-- Renews living grants. A grant that was left can only be left again. A revoked grant is renewed for a
-- token after the one that was in use: the revocation was meant for a holder that has passed its lease
-- on.
-- p_refs   array of objects with name in hex, id, ttl, index of the token in use, leave
-- p_order  the number of the call: a renewal that arrives after a later one changes nothing
-- p_batch  a number that no other batch has
-- Gives an array with, for each, its number from 1 on, and renewed ms | locked | gone why
-- Locked grants are skipped: one transaction that does not end must not cost a process all its leases.
-- A caller that asks again a moment later usually finds them free. The answers are read before the
-- commit, under the locks. After the commit, another renewal of the same grant may have put its own
-- batch into the row, and a living grant would be reported as gone. MySQL must be told which tables to
-- lock if one of them is not a base table. MariaDB has no syntax for that, and skips the comments that
-- are for MySQL.
CREATE PROCEDURE holdfast_renew(IN p_refs LONGTEXT CHARACTER SET ascii, IN p_order BIGINT,
  IN p_batch BIGINT, IN p_wait_s INT)
BEGIN
  DECLARE v_at, v_free BIGINT;
  DECLARE v_before INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_zone VARCHAR(64) DEFAULT @@SESSION.time_zone;
  DECLARE v_concat BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
  DECLARE v_refs, v_answers LONGTEXT CHARACTER SET ascii;
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
  -- Locked before the clock is read, so that a grant that expired during the wait is not revived.
  SELECT COUNT(*), CONCAT('[', COALESCE(GROUP_CONCAT(d.ref), ''), ']') INTO v_free, v_refs FROM (
    SELECT CONCAT('{"id":"', b.id, '","ttl":', b.ttl, ',"index":', b.in_use, ',"leave":', b.leaves, '}')
        AS ref
      FROM JSON_TABLE(p_refs, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$.name',
        id CHAR(32) PATH '$.id', ttl BIGINT PATH '$.ttl', in_use INT PATH '$.index',
        leaves INT PATH '$.leave')) b
      STRAIGHT_JOIN holdfast_grants g FORCE INDEX (PRIMARY)
        ON g.grant_id = UNHEX(b.id) AND g.resource = UNHEX(b.name)
       FOR UPDATE /*!80001 OF g */ SKIP LOCKED) d;
  CALL holdfast_foreign_lock(v_refs);
  SET v_at = holdfast_now_us(UTC_TIMESTAMP(6));
  -- A renewed grant is not revoked: either it was not before, or the revocation no longer applies. The
  -- order of tables matters: the other order reads all grants while there are few, and waits for grants
  -- of others.
  UPDATE JSON_TABLE(v_refs, '$[*]' COLUMNS (id CHAR(32) PATH '$.id', ttl BIGINT PATH '$.ttl',
      in_use INT PATH '$.index', leaves INT PATH '$.leave')) b
    STRAIGHT_JOIN holdfast_grants g FORCE INDEX (PRIMARY) ON g.grant_id = UNHEX(b.id)
    SET g.ttl_ms = b.ttl, g.expires_us = v_at + b.ttl * 1000, g.batch = p_batch,
      g.renewal_order = p_order, g.token_index = GREATEST(g.token_index, b.in_use),
      g.is_left = b.leaves, g.revoked = 0
   WHERE g.expires_us > v_at AND (g.is_left = 0 OR b.leaves)
     AND (g.revoked = 0 OR b.in_use > g.token_index) AND g.renewal_order <= p_order
     AND holdfast_foreign_mine(g.resource, g.grant_id);
  IF ROW_COUNT() < v_free THEN
    -- Marks all grants that were free, so that the others are known to be locked. By that, late
    -- renewals write too, and what their answers report is on the disk with their own commit.
    UPDATE JSON_TABLE(v_refs, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) b
      STRAIGHT_JOIN holdfast_grants g FORCE INDEX (PRIMARY) ON g.grant_id = UNHEX(b.id)
      SET g.batch = p_batch
     WHERE g.batch <> p_batch;
  END IF;
  CALL holdfast_foreign_keep(v_refs);
  SELECT GROUP_CONCAT(CONCAT('[', b.n, ',', CASE
      WHEN g.batch <> p_batch THEN '["locked"]'
      WHEN g.grant_id IS NULL OR g.expires_us <= v_at OR (g.is_left = 1 AND b.leaves = 0)
          OR (g.revoked = 1 AND b.in_use <= g.token_index)
          OR NOT holdfast_foreign_mine(g.resource, g.grant_id)
        THEN holdfast_why_gone(UNHEX(b.name), UNHEX(b.id), v_at)
      WHEN g.renewal_order = p_order THEN CONCAT('["renewed",', b.ttl, ']')
      ELSE CONCAT('["renewed",', (g.expires_us - v_at) DIV 1000, ']') END, ']')) INTO v_answers
    FROM JSON_TABLE(p_refs, '$[*]' COLUMNS (n FOR ORDINALITY,
      name VARCHAR(2048) PATH '$.name', id CHAR(32) PATH '$.id', ttl BIGINT PATH '$.ttl',
      in_use INT PATH '$.index', leaves INT PATH '$.leave')) b
    LEFT JOIN holdfast_grants g FORCE INDEX (PRIMARY) ON g.grant_id = UNHEX(b.id) AND g.resource = UNHEX(b.name);
  COMMIT AND NO CHAIN NO RELEASE;
  IF v_frozen IS NOT NULL THEN SET SESSION timestamp = v_frozen; END IF;
  SET SESSION innodb_lock_wait_timeout = v_before, SESSION time_zone = v_zone,
    SESSION group_concat_max_len = v_concat;
  SELECT CONCAT('[', COALESCE(v_answers, ''), ']') AS answer;
END
