-- A clock that stands: SET timestamp makes UTC_TIMESTAMP() what it says until it is taken back, and a pool
-- may lend us such a session. A clock that goes reads otherwise in every statement; two that come within
-- one microsecond are told apart by a third, later one.
-- p_before  what @@SESSION.timestamp was in an earlier statement
-- Lets it go, and gives what to set it to afterwards; null where it was going all the time.
CREATE PROCEDURE holdfast_thaw(IN p_before DOUBLE, OUT p_frozen DOUBLE)
BEGIN
  SET p_frozen = NULL;
  DO SLEEP(0.001);
  IF @@SESSION.timestamp = p_before THEN
    SET p_frozen = p_before;
    SET SESSION timestamp = DEFAULT;
  END IF;
END
