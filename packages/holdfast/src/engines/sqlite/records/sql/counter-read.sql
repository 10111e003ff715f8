SELECT next, reserved, boot FROM counter WHERE id = 1
