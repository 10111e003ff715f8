-- Prolongs grants that are alive.
-- p_refs  array of objects with name in hex, id, ttl; p_batch: a number that no other batch has
-- Gives for each renewed | gone why
CREATE PROCEDURE holdfast_renew(IN p_refs LONGTEXT CHARACTER SET ascii, IN p_batch BIGINT,
  IN p_wait_s INT)
BEGIN
  DECLARE v_at BIGINT;
  DECLARE v_before INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_zone VARCHAR(64) DEFAULT @@SESSION.time_zone;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK;
    SET SESSION innodb_lock_wait_timeout = v_before, SESSION time_zone = v_zone;
    RESIGNAL;
  END;
  SET SESSION innodb_lock_wait_timeout = p_wait_s, SESSION time_zone = @@GLOBAL.time_zone;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  -- Locked before the clock is read: a grant that expired while we waited for it is not revived.
  SELECT COUNT(*) INTO v_at FROM holdfast_grants g
    JOIN JSON_TABLE(p_refs, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) b
      ON g.grant_id = UNHEX(b.id) FOR UPDATE;
  SET v_at = holdfast_now_us(UTC_TIMESTAMP(6));
  UPDATE holdfast_grants g
    JOIN JSON_TABLE(p_refs, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$.name',
      id CHAR(32) PATH '$.id', ttl BIGINT PATH '$.ttl')) b
      ON g.grant_id = UNHEX(b.id) AND g.resource = UNHEX(b.name)
    SET g.ttl_ms = b.ttl, g.expires_us = v_at + b.ttl * 1000, g.batch = p_batch
   WHERE g.expires_us > v_at AND g.revoked = 0
     AND holdfast_foreign_mine(g.resource, g.grant_id);
  CALL holdfast_foreign_keep(p_refs);
  COMMIT;
  SET SESSION innodb_lock_wait_timeout = v_before, SESSION time_zone = v_zone;
  SELECT IF(g.grant_id IS NOT NULL, '["renewed"]',
      holdfast_why_gone(UNHEX(b.name), UNHEX(b.id), v_at)) AS answer
    FROM JSON_TABLE(p_refs, '$[*]' COLUMNS (n FOR ORDINALITY,
      name VARCHAR(2048) PATH '$.name', id CHAR(32) PATH '$.id')) b
    LEFT JOIN holdfast_grants g ON g.grant_id = UNHEX(b.id) AND g.resource = UNHEX(b.name)
      AND g.batch = p_batch
   ORDER BY b.n;
END
