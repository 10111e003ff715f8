CREATE PROCEDURE holdfast_version()
BEGIN
  SELECT 2 AS answer;
END
