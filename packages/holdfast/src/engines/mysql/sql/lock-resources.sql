-- Locks resources until the transaction ends, in the same order for everybody. Every turn must change
-- the row. InnoDB shows a commit to others before its log is on the disk, so this transaction may be
-- about to report a grant, or to continue from a token, that a crash would still undo. The log is one
-- sequence: a commit that wrote anything flushes the log up to itself, and with it all that it has
-- seen. A commit that wrote nothing flushes nothing.
-- p_refs  array of objects with a name, in hex
CREATE PROCEDURE holdfast_lock_resources(IN p_refs LONGTEXT CHARACTER SET ascii)
BEGIN
  INSERT INTO holdfast_resources (name, used_us)
    SELECT n.name, 0 FROM (
      SELECT DISTINCT UNHEX(a.name) AS name
        FROM JSON_TABLE(p_refs, '$[*]' COLUMNS (name VARCHAR(2048) PATH '$.name')) a) n
     ORDER BY n.name
    ON DUPLICATE KEY UPDATE used_us = holdfast_resources.used_us + 1;
END
