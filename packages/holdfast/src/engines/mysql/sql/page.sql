-- Names with a common prefix are adjacent, so only rows of the page are read.
-- Gives page, and an array of names in hex, each with what view gives
CREATE PROCEDURE holdfast_page(IN p_after VARBINARY(1024), IN p_prefix VARBINARY(1024),
  IN p_most INT)
BEGIN
  DECLARE v_at BIGINT;
  DECLARE v_zone VARCHAR(64) DEFAULT @@SESSION.time_zone;
  DECLARE v_concat BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
  DECLARE v_stamp DOUBLE DEFAULT @@SESSION.timestamp;
  DECLARE v_frozen DOUBLE DEFAULT NULL;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK AND NO CHAIN NO RELEASE;
    SET SESSION time_zone = v_zone, SESSION group_concat_max_len = v_concat;
    IF v_frozen IS NOT NULL THEN SET SESSION timestamp = v_frozen; END IF;
    RESIGNAL;
  END;
  SET SESSION group_concat_max_len = 16777216, SESSION time_zone = @@GLOBAL.time_zone;
  IF @@SESSION.timestamp = v_stamp THEN CALL holdfast_thaw(v_stamp, v_frozen); END IF;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION READ ONLY;
  SET v_at = holdfast_now_us(UTC_TIMESTAMP(6));
  SELECT CONCAT('["page",[', COALESCE(GROUP_CONCAT(CONCAT('["', HEX(p.name), '",',
      holdfast_view(p.name, v_at), ']') ORDER BY p.name), ''), ']]') AS answer
    FROM (SELECT name FROM holdfast_resources
           WHERE name > p_after AND name >= p_prefix ORDER BY name LIMIT p_most) p
   WHERE LEFT(p.name, LENGTH(p_prefix)) = p_prefix;
  COMMIT AND NO CHAIN NO RELEASE;
  IF v_frozen IS NOT NULL THEN SET SESSION timestamp = v_frozen; END IF;
  SET SESSION time_zone = v_zone, SESSION group_concat_max_len = v_concat;
END
