DELETE FROM tombstones WHERE grant_id > ?1 AND grant_id < ?2
