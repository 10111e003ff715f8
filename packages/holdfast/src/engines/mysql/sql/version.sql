CREATE PROCEDURE holdfast_version()
BEGIN
  SELECT 5 AS answer;
END
