-- Gives holders, waiters as mode and label in hex, ms for which a lock-delay keeps it closed
CREATE FUNCTION holdfast_view(p_res VARBINARY(1024), p_at BIGINT)
RETURNS LONGTEXT CHARACTER SET ascii READS SQL DATA
RETURN CONCAT('[', holdfast_holders(p_res, p_at), ',[',
  COALESCE((SELECT GROUP_CONCAT(CONCAT('["', IF(shared, 's', 'x'), '","', HEX(label), '"]')
      ORDER BY place)
    FROM holdfast_waiters WHERE resource = p_res AND heard_us > p_at - 10000000), ''), '],',
  COALESCE((SELECT GREATEST(0, MAX(CEIL((expires_us + delay_ms * 1000 - p_at) / 1000)))
    FROM holdfast_grants WHERE resource = p_res AND expires_us <= p_at), 0), ']')
