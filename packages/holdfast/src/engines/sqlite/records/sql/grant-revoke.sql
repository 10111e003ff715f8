UPDATE grants SET revoked = 1 WHERE resource = ?1 AND grant_id = ?2
