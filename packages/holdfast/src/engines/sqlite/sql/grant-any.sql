SELECT share_limit FROM grants WHERE resource = ?1 LIMIT 1
