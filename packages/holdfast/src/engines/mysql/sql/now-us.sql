-- The current time. Inside a procedure each statement reads the clock anew.
CREATE FUNCTION holdfast_now_us(utc DATETIME(6)) RETURNS BIGINT DETERMINISTIC NO SQL
RETURN TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', utc)
