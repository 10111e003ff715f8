UPDATE counter SET next = next + ?1 WHERE id = 1 RETURNING next, reserved
