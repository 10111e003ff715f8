SELECT frame, until FROM tombstones WHERE grant_id = ?1
