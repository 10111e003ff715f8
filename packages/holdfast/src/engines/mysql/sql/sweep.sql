-- Frees a little of what nobody came back for. Waits for nobody: what is locked is in use.
CREATE PROCEDURE holdfast_sweep(IN p_at BIGINT)
BEGIN
  DECLARE v_res VARBINARY(1024);
  DECLARE v_token BIGINT;
  DECLARE v_told LONGTEXT CHARACTER SET ascii;
  DECLARE v_left INT DEFAULT 20;
  DECLARE v_floor BIGINT DEFAULT NULL;
  -- A transaction of a user's that takes a claim may have it for long.
  SELECT token_floor INTO v_floor FROM holdfast_counter WHERE id = 1 FOR UPDATE SKIP LOCKED;
  DELETE FROM holdfast_tombstones WHERE until_us < p_at LIMIT 200;
  idle: WHILE v_left > 0 AND v_floor IS NOT NULL DO
    SET v_left = v_left - 1, v_res = NULL;
    SELECT name, last_token INTO v_res, v_token FROM holdfast_resources
     WHERE used_us < p_at - 60000000 ORDER BY used_us LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF v_res IS NULL THEN LEAVE idle; END IF;
    DELETE FROM holdfast_waiters WHERE resource = v_res AND heard_us < p_at - 10000000;
    CALL holdfast_promote(v_res, -1, NULL, p_at, v_told);
    IF EXISTS (SELECT 1 FROM holdfast_grants WHERE resource = v_res)
       OR EXISTS (SELECT 1 FROM holdfast_waiters WHERE resource = v_res) THEN
      UPDATE holdfast_resources SET used_us = p_at WHERE name = v_res;
    ELSE
      -- Raised first: whoever takes this name again begins above what it has given.
      UPDATE holdfast_counter SET token_floor = GREATEST(token_floor, v_token) WHERE id = 1;
      DELETE FROM holdfast_resources WHERE name = v_res;
    END IF;
  END WHILE;
END
