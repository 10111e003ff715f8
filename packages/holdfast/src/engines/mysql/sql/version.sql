CREATE PROCEDURE holdfast_version()
BEGIN
  SELECT 1 AS answer;
END
