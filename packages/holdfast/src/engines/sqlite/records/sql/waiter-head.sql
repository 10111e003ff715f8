SELECT * FROM waiters WHERE resource = ?1 ORDER BY seq LIMIT 1
