CREATE PROCEDURE holdfast_version()
BEGIN
  SELECT 6 AS answer;
END
