-- Runs in its own transaction. A session without autocommit would keep the transaction that a read
-- begins, and answer the next check from its snapshot.
-- Gives 1 | 0
CREATE PROCEDURE holdfast_check_token(IN p_res VARBINARY(1024), IN p_shared TINYINT, IN p_token BIGINT)
BEGIN
  DECLARE v_stamp DOUBLE DEFAULT @@SESSION.timestamp;
  DECLARE v_frozen DOUBLE DEFAULT NULL;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK AND NO CHAIN NO RELEASE;
    IF v_frozen IS NOT NULL THEN SET SESSION timestamp = v_frozen; END IF;
    RESIGNAL;
  END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION READ ONLY;
  IF @@SESSION.timestamp = v_stamp THEN CALL holdfast_thaw(v_stamp, v_frozen); END IF;
  -- Ranges do not overlap, so it is the grant with the greatest first token that is not greater.
  SELECT COUNT(*) AS answer FROM (
    SELECT shared, revoked, expires_us, token, tokens FROM holdfast_grants FORCE INDEX (holders)
     WHERE resource = p_res AND token <= p_token ORDER BY token DESC LIMIT 1) g
   WHERE g.shared = p_shared AND g.revoked = 0 AND g.expires_us > holdfast_now_us(UTC_TIMESTAMP(6))
     AND p_token < g.token + g.tokens;
  COMMIT AND NO CHAIN NO RELEASE;
  IF v_frozen IS NOT NULL THEN SET SESSION timestamp = v_frozen; END IF;
END
