SELECT count(*) AS position FROM waiters WHERE resource = ?1 AND seq < ?2
