-- Both indexes are sorted, so SQLite merges the two halves and reads no further than the limit.
SELECT resource FROM grants WHERE resource > ?1
UNION
SELECT resource FROM waiters WHERE resource > ?1
ORDER BY resource LIMIT ?2
