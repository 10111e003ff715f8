-- A grant is also the row of this name in ShedLock's own table. It is taken, extended and released by
-- ShedLock's own statements, in UTC. locked_by ends with a mark of this one grant: two runs on one host
-- have the same name, and neither may release the other's lock. The columns are DATETIME although
-- ShedLock's page says TIMESTAMP, which is converted by the time zone of the session that reads or
-- writes it. If a column is TIMESTAMP already, callers have set the server's zone, which ShedLock's
-- sessions have by default.
CREATE TABLE IF NOT EXISTS shedlock_table (
  name VARCHAR(64) NOT NULL,
  lock_until DATETIME(3) NOT NULL,
  locked_at DATETIME(3) NOT NULL,
  locked_by VARCHAR(255) NOT NULL,
  PRIMARY KEY (name)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
-- next
CREATE FUNCTION holdfast_foreign_mark(p_id BINARY(16)) RETURNS CHAR(17) CHARACTER SET ascii
DETERMINISTIC NO SQL
RETURN CONCAT(' ', LEFT(SHA2(p_id, 256), 16))
-- next
CREATE FUNCTION holdfast_foreign_utc(p_us BIGINT) RETURNS DATETIME(3) DETERMINISTIC NO SQL
RETURN '1970-01-01 00:00:00.000' + INTERVAL p_us MICROSECOND
-- next
-- A procedure and not a function: with a binary log, the server refuses a function that changes data.
CREATE PROCEDURE holdfast_foreign_take(IN p_res VARBINARY(1024), IN p_id BINARY(16),
  IN p_label VARBINARY(1024), IN p_until BIGINT, OUT p_taken TINYINT)
proc: BEGIN
  DECLARE v_name VARCHAR(1024) CHARACTER SET utf8mb4 DEFAULT CONVERT(p_res USING utf8mb4);
  DECLARE v_by VARCHAR(255) CHARACTER SET utf8mb4
    DEFAULT CONCAT(LEFT(CONVERT(p_label USING utf8mb4), 200), holdfast_foreign_mark(p_id));
  DECLARE v_rows INT;
  -- The column's collation folds names that we keep apart: another name in the same row belongs to
  -- another holder.
  IF CHAR_LENGTH(v_name) > 64 THEN
    SIGNAL SQLSTATE '45064' SET MESSAGE_TEXT = 'a name in ShedLock''s table has at most 64 characters';
  END IF;
  -- ShedLock inserts first, in its own transaction. In ours, an insert that finds the row would lock it
  -- first for reading and then for writing. With ShedLock's release in between, that is a deadlock.
  UPDATE shedlock_table
     SET lock_until = holdfast_foreign_utc(p_until), locked_at = UTC_TIMESTAMP(3), locked_by = v_by
   WHERE name = v_name AND lock_until <= UTC_TIMESTAMP(3);
  SET p_taken = ROW_COUNT() > 0;
  IF p_taken THEN LEAVE proc; END IF;
  SELECT COUNT(*) INTO v_rows FROM shedlock_table WHERE name = v_name;
  IF v_rows > 0 THEN LEAVE proc; END IF;
  INSERT IGNORE INTO shedlock_table (name, lock_until, locked_at, locked_by)
    VALUES (v_name, holdfast_foreign_utc(p_until), UTC_TIMESTAMP(3), v_by);
  SET p_taken = ROW_COUNT() > 0;
END
-- next
CREATE FUNCTION holdfast_foreign_mine(p_res VARBINARY(1024), p_id BINARY(16)) RETURNS TINYINT
READS SQL DATA
RETURN EXISTS (SELECT 1 FROM shedlock_table
  WHERE name = CONVERT(p_res USING utf8mb4) AND RIGHT(locked_by, 17) = holdfast_foreign_mark(p_id)
    AND lock_until > UTC_TIMESTAMP(3))
-- next
-- Called before these rows are read. A read inside an update would lock them for reading, and the
-- update that follows for writing. With ShedLock's own update in between, that is a deadlock.
-- p_refs  array of objects with the id of a grant
CREATE PROCEDURE holdfast_foreign_lock(IN p_refs LONGTEXT CHARACTER SET ascii)
BEGIN
  DECLARE v_rows BIGINT;
  SELECT COUNT(*) INTO v_rows FROM JSON_TABLE(p_refs, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) b
    STRAIGHT_JOIN holdfast_grants g FORCE INDEX (PRIMARY) ON g.grant_id = UNHEX(b.id)
    STRAIGHT_JOIN shedlock_table s ON s.name = CONVERT(g.resource USING utf8mb4)
     FOR UPDATE /*!80001 OF g, s */;
END
-- next
CREATE PROCEDURE holdfast_foreign_keep(IN p_refs LONGTEXT CHARACTER SET ascii)
BEGIN
  UPDATE shedlock_table s
    JOIN (SELECT g.resource, g.grant_id, g.expires_us, g.delay_ms FROM
            JSON_TABLE(p_refs, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) b
            STRAIGHT_JOIN holdfast_grants g FORCE INDEX (PRIMARY) ON g.grant_id = UNHEX(b.id)) g
      ON s.name = CONVERT(g.resource USING utf8mb4)
     AND RIGHT(s.locked_by, 17) = holdfast_foreign_mark(g.grant_id)
    SET s.lock_until = holdfast_foreign_utc(g.expires_us + g.delay_ms * 1000)
   WHERE s.lock_until > UTC_TIMESTAMP(3);
END
-- next
CREATE PROCEDURE holdfast_foreign_free(IN p_res VARBINARY(1024), IN p_id BINARY(16), IN p_at BIGINT)
BEGIN
  UPDATE shedlock_table SET lock_until = holdfast_foreign_utc(p_at)
   WHERE name = CONVERT(p_res USING utf8mb4) AND RIGHT(locked_by, 17) = holdfast_foreign_mark(p_id)
     AND lock_until > holdfast_foreign_utc(p_at);
END
-- next
-- The owner of the row, if it is not one of our holders, in the format of holders.
CREATE FUNCTION holdfast_foreign_holder(p_res VARBINARY(1024), p_at BIGINT)
RETURNS VARCHAR(2048) CHARACTER SET ascii READS SQL DATA
RETURN COALESCE((SELECT CONCAT('["x","0","', HEX(s.locked_by), '",',
    GREATEST(0, TIMESTAMPDIFF(MICROSECOND, holdfast_foreign_utc(p_at), s.lock_until) DIV 1000), ',0]')
  FROM shedlock_table s
 WHERE s.name = CONVERT(p_res USING utf8mb4) AND s.lock_until > holdfast_foreign_utc(p_at)
   AND NOT EXISTS (SELECT 1 FROM holdfast_grants g WHERE g.resource = p_res
     AND RIGHT(s.locked_by, 17) = holdfast_foreign_mark(g.grant_id))), '')
-- next
-- ShedLock's own clients do not see a claim in a transaction, and do not wait for a transaction that
-- checked its fence.
CREATE PROCEDURE holdfast_foreign_refuse()
BEGIN
  SIGNAL SQLSTATE '45066' SET MESSAGE_TEXT = 'ShedLock knows of no transactions';
END
-- next
CREATE PROCEDURE holdfast_holds()
BEGIN
  SELECT 'shedlock' AS answer;
END
