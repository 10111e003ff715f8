-- What older routines have granted has no row in `fences` yet and is not in its resource's number.
INSERT IGNORE INTO holdfast_fences (resource, token, tokens, shared, refused)
  SELECT resource, token, tokens, shared, IF(revoked, token + token_index, 0) FROM holdfast_grants
-- next
UPDATE holdfast_resources r
  SET r.held = (SELECT COUNT(*) FROM holdfast_grants g WHERE g.resource = r.name), r.counted_us = 0
-- next
CREATE PROCEDURE holdfast_version()
BEGIN
  SELECT 7 AS answer;
END
