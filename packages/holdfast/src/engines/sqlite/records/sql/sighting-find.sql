SELECT version, seen_at FROM sightings WHERE subject = ?1 AND frame = ?2
