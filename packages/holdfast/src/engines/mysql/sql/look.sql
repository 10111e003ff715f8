-- Gives what view gives
CREATE PROCEDURE holdfast_look(IN p_res VARBINARY(1024))
BEGIN
  DECLARE v_zone VARCHAR(64) DEFAULT @@SESSION.time_zone;
  DECLARE v_concat BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    SET SESSION time_zone = v_zone, SESSION group_concat_max_len = v_concat;
    RESIGNAL;
  END;
  SET SESSION group_concat_max_len = 16777216, SESSION time_zone = @@GLOBAL.time_zone;
  SELECT holdfast_view(p_res, holdfast_now_us(UTC_TIMESTAMP(6))) AS answer;
  SET SESSION time_zone = v_zone, SESSION group_concat_max_len = v_concat;
END
