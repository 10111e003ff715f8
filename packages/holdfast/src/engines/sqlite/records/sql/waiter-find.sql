SELECT * FROM waiters WHERE grant_id = ?1
