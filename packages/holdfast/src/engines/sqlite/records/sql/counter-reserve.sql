-- This commits durably before any token of the new block is used.
UPDATE counter SET reserved = max(reserved, next) + ?1 WHERE id = 1
