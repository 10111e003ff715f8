SELECT DISTINCT resource FROM grants WHERE peer = ?1 AND revoked = 1
