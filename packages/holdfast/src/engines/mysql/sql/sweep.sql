-- Removes a few rows that nobody came back for. Waits for nobody: a locked row is in use. p_keep_ms
-- says only how long such rows are kept. However short it is, a waiter keeps its place for ten seconds,
-- and a grant stays until its lock-delay is over. Waiters that become eligible find out by their next
-- heartbeat. Every index is named, because tables whose rows come and go have no useful statistics.
-- p_most  how many resources to look at; a few statements for all of them
CREATE PROCEDURE holdfast_sweep(IN p_at BIGINT, IN p_keep_ms BIGINT, IN p_most INT)
proc: BEGIN
  DECLARE v_names, v_over LONGTEXT CHARACTER SET ascii;
  DECLARE v_token BIGINT;
  DECLARE v_floor BIGINT DEFAULT NULL;
  DECLARE v_never BIGINT DEFAULT 9223372036854775807;
  DELETE FROM holdfast_tombstones WHERE until_us < p_at LIMIT 200;
  -- A user's transaction that takes a claim may keep this row locked for long.
  SELECT token_floor INTO v_floor FROM holdfast_counter WHERE id = 1 FOR UPDATE SKIP LOCKED;
  IF v_floor IS NULL THEN LEAVE proc; END IF;
  SELECT JSON_ARRAYAGG(HEX(d.name)), MAX(d.last_token) INTO v_names, v_token FROM (
    SELECT name, last_token FROM holdfast_resources FORCE INDEX (used)
     WHERE used_us < p_at - p_keep_ms * 1000 ORDER BY used_us LIMIT p_most
       FOR UPDATE SKIP LOCKED) d;
  IF v_names IS NULL THEN LEAVE proc; END IF;
  -- A grant that is being renewed, or whose fence a user's transaction has checked, is not over.
  SELECT JSON_ARRAYAGG(HEX(d.grant_id)) INTO v_over FROM (
    SELECT g.grant_id FROM JSON_TABLE(v_names, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$')) n
      STRAIGHT_JOIN holdfast_grants g FORCE INDEX (holders) ON g.resource = UNHEX(n.name)
      STRAIGHT_JOIN holdfast_fences f FORCE INDEX (PRIMARY)
        ON f.resource = g.resource AND f.token = g.token
     WHERE g.expires_us + g.delay_ms * 1000 <= p_at
       FOR UPDATE /*!80001 OF g, f */ SKIP LOCKED) d;
  IF v_over IS NOT NULL THEN CALL holdfast_end_grants(v_over); END IF;
  DELETE w FROM JSON_TABLE(v_names, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$')) n
    STRAIGHT_JOIN holdfast_waiters w FORCE INDEX (line) ON w.resource = UNHEX(n.name)
   WHERE w.heard_us < p_at - 10000000;
  -- Moves used_us to the end of the first grant or waiter that is left; to the greatest number if none
  -- is left.
  UPDATE JSON_TABLE(v_names, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$')) n
    STRAIGHT_JOIN holdfast_resources r FORCE INDEX (PRIMARY) ON r.name = UNHEX(n.name)
    SET r.held = (SELECT COUNT(*) FROM holdfast_grants g FORCE INDEX (holders)
        WHERE g.resource = r.name), r.counted_us = 0, r.used_us = GREATEST(p_at, LEAST(
      COALESCE((SELECT MIN(g.expires_us + g.delay_ms * 1000)
                  FROM holdfast_grants g FORCE INDEX (holders) WHERE g.resource = r.name), v_never),
      COALESCE((SELECT MIN(w.heard_us)
                  FROM holdfast_waiters w FORCE INDEX (line) WHERE w.resource = r.name), v_never)));
  -- Raised before the delete: a resource that is created again begins above the tokens it has given.
  UPDATE holdfast_counter SET token_floor = GREATEST(token_floor, v_token) WHERE id = 1;
  DELETE r FROM holdfast_resources r FORCE INDEX (used) WHERE r.used_us = v_never;
END
