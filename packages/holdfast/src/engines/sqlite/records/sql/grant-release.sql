-- Ends a grant in one step if it is alive in the caller's frame and its holder has not left it.
DELETE FROM grants
WHERE resource = ?1 AND grant_id = ?2 AND frame = ?3 AND expires_at > ?4 AND peer <> ''
