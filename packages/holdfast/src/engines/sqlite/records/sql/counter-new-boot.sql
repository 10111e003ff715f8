-- After a boot the last commits may be missing, so every token below "reserved" counts as used.
UPDATE counter SET next = max(next, reserved), boot = ?1 WHERE id = 1
