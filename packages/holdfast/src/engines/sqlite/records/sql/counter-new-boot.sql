-- After a boot the last commits may be missing: everything below "reserved" counts as given out.
UPDATE counter SET next = max(next, reserved), boot = ?1 WHERE id = 1
