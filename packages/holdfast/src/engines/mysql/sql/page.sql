-- One page of names, in hex, with what view gives for each.
CREATE PROCEDURE holdfast_page(IN p_after VARBINARY(1024), IN p_most INT)
BEGIN
  DECLARE v_at BIGINT DEFAULT holdfast_now_us(UTC_TIMESTAMP(6));
  SET SESSION group_concat_max_len = 16777216;
  SELECT CONCAT('["', HEX(name), '",', holdfast_view(name, v_at), ']') AS answer
    FROM holdfast_resources WHERE name > p_after ORDER BY name LIMIT p_most;
END
