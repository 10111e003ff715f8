CREATE PROCEDURE holdfast_version()
BEGIN
  SELECT 3 AS answer;
END
