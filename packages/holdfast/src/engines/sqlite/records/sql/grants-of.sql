-- A page of what blocks a resource, or did until a moment ago.
SELECT * FROM grants WHERE resource = ?1 AND grant_id > ?2 ORDER BY grant_id LIMIT ?3
