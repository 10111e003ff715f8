-- A page of the grants of a resource, including grants that are over but not yet removed.
SELECT * FROM grants WHERE resource = ?1 AND grant_id > ?2 ORDER BY grant_id LIMIT ?3
