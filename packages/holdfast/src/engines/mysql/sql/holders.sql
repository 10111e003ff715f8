-- For people: mode, token, label in hex, what is left, whether revoked.
CREATE FUNCTION holdfast_holders(p_res VARBINARY(1024), p_at BIGINT)
RETURNS LONGTEXT CHARACTER SET ascii READS SQL DATA
RETURN (SELECT CONCAT('[', COALESCE(GROUP_CONCAT(CONCAT('["', IF(shared, 's', 'x'), '","', token, '","',
    HEX(label), '",', CEIL((expires_us - p_at) / 1000), ',', revoked, ']') ORDER BY token), ''), ']')
  FROM holdfast_grants WHERE resource = p_res AND expires_us > p_at)
