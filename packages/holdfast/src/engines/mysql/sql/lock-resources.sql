-- Locks resources until the transaction ends, the same way round for everybody.
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
