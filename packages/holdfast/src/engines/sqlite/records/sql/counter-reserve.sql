-- Commits durably before any token of the new block is given out.
UPDATE counter SET reserved = max(reserved, next) + ?1 WHERE id = 1
