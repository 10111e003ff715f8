INSERT OR REPLACE INTO tombstones (grant_id, frame, until) VALUES (?1, ?2, ?3)
