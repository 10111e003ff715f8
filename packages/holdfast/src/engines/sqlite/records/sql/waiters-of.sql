SELECT grant_id, mode, label FROM waiters WHERE resource = ?1 ORDER BY seq
