-- One page of names, in hex, with what view gives for each.
CREATE PROCEDURE holdfast_page(IN p_after VARBINARY(1024), IN p_most INT)
BEGIN
  DECLARE v_at BIGINT DEFAULT holdfast_now_us(UTC_TIMESTAMP(6));
  DECLARE v_zone VARCHAR(64) DEFAULT @@SESSION.time_zone;
  DECLARE v_concat BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    SET SESSION time_zone = v_zone, SESSION group_concat_max_len = v_concat;
    RESIGNAL;
  END;
  SET SESSION group_concat_max_len = 16777216, SESSION time_zone = @@GLOBAL.time_zone;
  SELECT CONCAT('["', HEX(name), '",', holdfast_view(name, v_at), ']') AS answer
    FROM holdfast_resources WHERE name > p_after ORDER BY name LIMIT p_most;
  SET SESSION time_zone = v_zone, SESSION group_concat_max_len = v_concat;
END
