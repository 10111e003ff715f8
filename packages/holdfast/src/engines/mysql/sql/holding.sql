-- How many hold a resource, and how many of them are writers, after grants that are over were removed.
-- Up to 16 holders are counted each time. More than 16, who can only be readers, are counted once a
-- second; in between, the row of the resource has their number. So a claim costs the same beside 50
-- holders and beside 2,000. A renewal for a shorter time is then noticed up to a second late.
CREATE PROCEDURE holdfast_holding(IN p_res VARBINARY(1024), IN p_at BIGINT, OUT p_held BIGINT,
  OUT p_writers BIGINT)
proc: BEGIN
  DECLARE v_until, v_ends, v_rows BIGINT DEFAULT 0;
  SET p_held = 0, p_writers = 0;
  SELECT held, counted_us INTO p_held, v_until FROM holdfast_resources WHERE name = p_res;
  IF v_until > p_at THEN LEAVE proc; END IF;
  SELECT COUNT(*), COALESCE(SUM(shared = 0), 0), MIN(expires_us + delay_ms * 1000)
    INTO v_rows, p_writers, v_ends
    FROM holdfast_grants FORCE INDEX (holders) WHERE resource = p_res;
  IF v_ends <= p_at THEN
    CALL holdfast_clear_over(p_res, p_at);
    SELECT COUNT(*), COALESCE(SUM(shared = 0), 0), MIN(expires_us + delay_ms * 1000)
      INTO v_rows, p_writers, v_ends
      FROM holdfast_grants FORCE INDEX (holders) WHERE resource = p_res;
  END IF;
  SET v_until = IF(v_rows > 16, LEAST(v_ends, p_at + 1000000), 0);
  IF v_until > 0 OR v_rows <> p_held THEN
    UPDATE holdfast_resources SET held = v_rows, counted_us = v_until WHERE name = p_res;
  END IF;
  SET p_held = v_rows;
END
