-- Removes grants whose lock-delay is over. A locked grant stays: it is being renewed, or a transaction
-- that checked its fence is still open, and nobody may get in before that commits.
CREATE PROCEDURE holdfast_clear_over(IN p_res VARBINARY(1024), IN p_at BIGINT)
BEGIN
  DECLARE v_over LONGTEXT CHARACTER SET ascii;
  SELECT JSON_ARRAYAGG(HEX(d.grant_id)) INTO v_over FROM (
    SELECT g.grant_id FROM holdfast_grants g FORCE INDEX (holders)
      STRAIGHT_JOIN holdfast_fences f FORCE INDEX (PRIMARY)
        ON f.resource = g.resource AND f.token = g.token
     WHERE g.resource = p_res AND g.expires_us + g.delay_ms * 1000 <= p_at
       FOR UPDATE SKIP LOCKED) d;
  IF v_over IS NOT NULL THEN CALL holdfast_end_grants(v_over); END IF;
END
-- next
-- p_ids  array of ids, in hex; the caller has locked them and their rows in `fences`
CREATE PROCEDURE holdfast_end_grants(IN p_ids LONGTEXT CHARACTER SET ascii)
BEGIN
  DELETE g, f FROM JSON_TABLE(p_ids, '$[*]' COLUMNS (id CHAR(32) PATH '$')) n
    STRAIGHT_JOIN holdfast_grants g FORCE INDEX (PRIMARY) ON g.grant_id = UNHEX(n.id)
    STRAIGHT_JOIN holdfast_fences f FORCE INDEX (PRIMARY)
      ON f.resource = g.resource AND f.token = g.token;
END
