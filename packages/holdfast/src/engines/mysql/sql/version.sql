-- Grants of older routines have no row in `fences` yet and are not counted in their resource's row.
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
