-- Another program's table that must agree before a grant is made. With hold "rows" there is none;
-- foreign-shedlock.sql has the other version.
CREATE PROCEDURE holdfast_foreign_take(IN p_res VARBINARY(1024), IN p_id BINARY(16),
  IN p_label VARBINARY(1024), IN p_until BIGINT, OUT p_taken TINYINT)
BEGIN
  SET p_taken = 1;
END
-- next
CREATE FUNCTION holdfast_foreign_mine(p_res VARBINARY(1024), p_id BINARY(16))
RETURNS TINYINT DETERMINISTIC NO SQL
RETURN 1
-- next
CREATE PROCEDURE holdfast_foreign_lock(IN p_refs LONGTEXT CHARACTER SET ascii)
BEGIN
END
-- next
CREATE PROCEDURE holdfast_foreign_keep(IN p_refs LONGTEXT CHARACTER SET ascii)
BEGIN
END
-- next
CREATE PROCEDURE holdfast_foreign_free(IN p_res VARBINARY(1024), IN p_id BINARY(16), IN p_at BIGINT)
BEGIN
END
-- next
CREATE FUNCTION holdfast_foreign_holder(p_res VARBINARY(1024), p_at BIGINT)
RETURNS VARCHAR(1024) CHARACTER SET ascii DETERMINISTIC NO SQL
RETURN ''
-- next
-- Whether a user's transaction may take a claim or check a fence here.
CREATE PROCEDURE holdfast_foreign_refuse()
BEGIN
END
-- next
CREATE PROCEDURE holdfast_holds()
BEGIN
  SELECT 'rows' AS answer;
END
