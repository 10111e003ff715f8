-- Unfreezes a frozen clock. SET timestamp fixes UTC_TIMESTAMP() until it is reset, and a pool may lend
-- us such a session. A running clock differs between statements; two readings within one microsecond
-- are told apart by a third, later one.
-- p_before  what @@SESSION.timestamp was in an earlier statement
-- Gives what to set it to afterwards; null if the clock was running
CREATE PROCEDURE holdfast_thaw(IN p_before DOUBLE, OUT p_frozen DOUBLE)
BEGIN
  SET p_frozen = NULL;
  DO SLEEP(0.001);
  IF @@SESSION.timestamp = p_before THEN
    SET p_frozen = p_before;
    SET SESSION timestamp = DEFAULT;
  END IF;
END
