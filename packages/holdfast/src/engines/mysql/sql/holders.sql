-- For people: mode, token in use, label in hex, what is left, whether revoked. In no order: to sort them here
-- would take a temporary table on disk for every answer.
CREATE FUNCTION holdfast_holders(p_res VARBINARY(1024), p_at BIGINT)
RETURNS LONGTEXT CHARACTER SET ascii READS SQL DATA
RETURN (SELECT CONCAT('[', CONCAT_WS(',', GROUP_CONCAT(CONCAT('["', IF(shared, 's', 'x'), '","',
    token + token_index, '","',
    HEX(label), '",', CEIL((expires_us - p_at) / 1000), ',', revoked, ']')),
    NULLIF(holdfast_foreign_holder(p_res, p_at), '')), ']')
  FROM holdfast_grants WHERE resource = p_res AND expires_us > p_at)
