SELECT resource FROM (
  SELECT resource FROM grants WHERE resource > ?1
  UNION
  SELECT resource FROM waiters WHERE resource > ?1
) ORDER BY resource LIMIT ?2
