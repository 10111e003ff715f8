-- Inside a transaction of the caller's: whether this token's grant is there, and it stays until that
-- transaction ends. Only its entry in the index is locked, by a read that sees what is committed now,
-- whatever the snapshot of the transaction shows. A renewal changes nothing in that index and goes on;
-- whoever wants to end the grant waits. One whose time is over counts as long as nobody succeeded it.
CREATE PROCEDURE holdfast_fence(IN p_res VARBINARY(1024), IN p_shared TINYINT, IN p_token BIGINT)
BEGIN
  SELECT COUNT(*) AS answer FROM holdfast_grants FORCE INDEX (fence)
   WHERE resource = p_res AND shared = p_shared AND revoked = 0
     AND token <= p_token AND token + tokens > p_token LOCK IN SHARE MODE;
END
