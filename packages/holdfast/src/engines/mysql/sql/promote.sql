-- Grants to waiters from the head of the queue while they fit. Waiters of this batch learn it from its
-- answer. The others hold for one claim window until they send a heartbeat. Waiters of p_owner are
-- listed in p_told as id, token, tokens, ms, so that their process learns of them at once. A waiter
-- that sent no heartbeat for three seconds is skipped until it sends one again, and so is a waiter that
-- has a grant which is over but still exists.
CREATE PROCEDURE holdfast_promote(IN p_res VARBINARY(1024), IN p_batch BIGINT, IN p_owner BINARY(8),
  IN p_at BIGINT, OUT p_told LONGTEXT CHARACTER SET ascii)
BEGIN
  DECLARE v_id BINARY(16);
  DECLARE v_shared, v_taken TINYINT;
  DECLARE v_tokens INT;
  DECLARE v_limit, v_ttl, v_delay, v_batch, v_token, v_held, v_writers, v_life BIGINT;
  DECLARE v_owner BINARY(8);
  DECLARE v_label VARBINARY(1024);
  SET p_told = '';
  CALL holdfast_holding(p_res, p_at, v_held, v_writers);
  promotions: LOOP
    IF v_writers > 0 THEN LEAVE promotions; END IF;
    SET v_id = NULL;
    SELECT grant_id, shared, limit_to, tokens, ttl_ms, delay_ms, batch, owner, label
      INTO v_id, v_shared, v_limit, v_tokens, v_ttl, v_delay, v_batch, v_owner, v_label
      FROM holdfast_waiters w FORCE INDEX (line)
     WHERE resource = p_res AND heard_us > p_at - 3000000
       AND NOT EXISTS (SELECT 1 FROM holdfast_grants g WHERE g.grant_id = w.grant_id)
     ORDER BY place LIMIT 1;
    IF v_id IS NULL OR (v_held > 0
        AND (v_shared = 0 OR (v_limit > 0 AND v_held >= v_limit))) THEN
      LEAVE promotions;
    END IF;
    SET v_life = IF(v_batch = p_batch, v_ttl, LEAST(v_ttl, 3000));
    CALL holdfast_foreign_take(p_res, v_id, v_label, p_at + (v_life + v_delay) * 1000, v_taken);
    IF NOT v_taken THEN LEAVE promotions; END IF;
    DELETE FROM holdfast_waiters WHERE grant_id = v_id;
    CALL holdfast_give(v_id, p_res, v_shared, v_limit, v_tokens, v_ttl, v_delay, v_label, v_life,
      p_at, v_token);
    IF v_owner = p_owner THEN
      SET p_told = CONCAT(p_told, IF(p_told = '', '', ','), '["', LOWER(HEX(v_id)), '","', v_token,
        '",', v_tokens, ',', v_life, ']');
    END IF;
    SET v_held = v_held + 1, v_writers = v_writers + (v_shared = 0);
  END LOOP;
END
