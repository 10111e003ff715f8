-- When a waiter must look by itself. The head looks at its pace, which slows down the longer it
-- waits, and when the holder's time is over; the others the more rarely the further they are.
CREATE FUNCTION holdfast_next_ms(p_res VARBINARY(1024), p_before BIGINT, p_joined BIGINT, p_at BIGINT)
RETURNS BIGINT READS SQL DATA
RETURN IF(p_before > 0, LEAST(1000, 15 * (p_before + 1)),
  GREATEST(5, LEAST(100, GREATEST(12, (p_at - p_joined) DIV 50000), COALESCE((
    SELECT MIN(CEIL((expires_us + delay_ms * 1000 - p_at) / 1000))
      FROM holdfast_grants WHERE resource = p_res),
    IF(holdfast_foreign_holder(p_res, p_at) = '', 1000, 75)))))
