-- Inside the caller's transaction: whether this token's grant exists. If so, it stays until the
-- transaction ends. Ending the grant needs its row in `fences`, and waits; a renewal does not. A grant
-- whose time is over counts as long as nobody succeeded it. The first token of a grant is a multiple of
-- 1024, so each token tells the whole primary key of that row. An insert that finds the row locks it
-- for reading, whatever the snapshot of the transaction shows. An insert that does not find it locks a
-- key that nobody will ever use. Neither locks anything beside it, as a read would in the default
-- isolation level. From 11.6.2 on, MariaDB by default refuses to lock a row that was changed since the
-- transaction's snapshot. Here such a change is what we ask about, so that setting is turned off
-- meanwhile. After an error transaction.ts restores it.
CREATE PROCEDURE holdfast_fence(IN p_res VARBINARY(1024), IN p_shared TINYINT, IN p_token BIGINT)
BEGIN
  DECLARE v_first BIGINT DEFAULT p_token - p_token MOD 1024;
  DECLARE v_good INT DEFAULT 0;
  CALL holdfast_foreign_refuse();
  /*M!110602 SET @holdfast_snapshot = @@SESSION.innodb_snapshot_isolation,
    SESSION innodb_snapshot_isolation = 0; */
  INSERT IGNORE INTO holdfast_fences (resource, token, tokens, shared) VALUES (p_res, v_first, 0, 0);
  IF ROW_COUNT() > 0 THEN
    DELETE FROM holdfast_fences WHERE resource = p_res AND token = v_first;
  ELSE
    SELECT COUNT(*) INTO v_good FROM holdfast_fences
     WHERE resource = p_res AND token = v_first AND shared = p_shared AND refused < p_token
       AND p_token < token + tokens LOCK IN SHARE MODE;
  END IF;
  IF v_good = 0 THEN
    -- Token ranges of version 5 and older begin anywhere.
    SET v_first = NULL;
    SELECT g.token INTO v_first FROM (
      SELECT token, tokens FROM holdfast_grants FORCE INDEX (holders)
       WHERE resource = p_res AND token <= p_token ORDER BY token DESC LIMIT 1) g
     WHERE p_token < g.token + g.tokens AND g.token MOD 1024 <> 0;
    IF v_first IS NOT NULL THEN
      SELECT COUNT(*) INTO v_good FROM holdfast_fences
       WHERE resource = p_res AND token = v_first AND shared = p_shared AND refused < p_token
         LOCK IN SHARE MODE;
    END IF;
  END IF;
  /*M!110602 SET SESSION innodb_snapshot_isolation = @holdfast_snapshot, @holdfast_snapshot = NULL; */
  SELECT v_good AS answer;
END
