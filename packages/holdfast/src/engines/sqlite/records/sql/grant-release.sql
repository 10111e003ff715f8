-- Ends a grant that is alive in its holder's own frame and was not left, in one step.
DELETE FROM grants
WHERE resource = ?1 AND grant_id = ?2 AND frame = ?3 AND expires_at > ?4 AND peer <> ''
