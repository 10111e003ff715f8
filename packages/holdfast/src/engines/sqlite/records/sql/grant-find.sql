SELECT * FROM grants WHERE resource = ?1 AND grant_id = ?2
