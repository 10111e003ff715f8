INSERT OR REPLACE INTO sightings (subject, frame, version, seen_at) VALUES (?1, ?2, ?3, ?4)
