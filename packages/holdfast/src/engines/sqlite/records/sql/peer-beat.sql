-- Records a heartbeat of an engine, and inserts its row if there is none.
INSERT INTO peers (id, boot, pid_namespace, pid, started, bell, frame, beat_at, version)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)
ON CONFLICT (id) DO UPDATE SET bell = excluded.bell, beat_at = excluded.beat_at, version = version + 1
