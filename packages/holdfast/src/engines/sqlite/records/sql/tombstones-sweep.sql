DELETE FROM tombstones WHERE frame = ?1 AND until <= ?2
