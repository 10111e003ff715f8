DELETE FROM waiters WHERE peer = ?1
