-- What an engine has to be told: grants made for it by others, and its own that were revoked.
SELECT * FROM grants WHERE peer = ?1 AND (claimed = 0 OR revoked = 1)
