-- Gives what view gives
CREATE PROCEDURE holdfast_look(IN p_res VARBINARY(1024))
BEGIN
  SET SESSION group_concat_max_len = 16777216;
  SELECT holdfast_view(p_res, holdfast_now_us(UTC_TIMESTAMP(6))) AS answer;
END
