-- Removes a few rows that nobody came back for. Waits for nobody. keep_ms says only how long such rows
-- are kept. However short it is, a waiter keeps its place for ten seconds, and a grant stays until its
-- lock-delay is over.
CREATE OR REPLACE FUNCTION holdfast.sweep(keep_ms bigint) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  at timestamptz := clock_timestamp();
  since timestamptz := holdfast.idle_since(at, keep_ms);
  res text;
  oldest timestamptz;
BEGIN
  DELETE FROM holdfast.tombstones WHERE grant_id IN (
    SELECT grant_id FROM holdfast.tombstones
     WHERE until < at ORDER BY until LIMIT 200 FOR UPDATE SKIP LOCKED);
  FOR res IN
    SELECT name FROM holdfast.resources
     WHERE due_at < since ORDER BY due_at LIMIT 50 FOR UPDATE SKIP LOCKED
  LOOP
    oldest := least(
      (SELECT min(expires_at + holdfast.ms(delay_ms)) FROM holdfast.grants WHERE resource = res),
      (SELECT min(heard_at) FROM holdfast.waiters WHERE resource = res));
    IF oldest > since THEN
      UPDATE holdfast.resources SET due_at = oldest WHERE name = res;
    ELSE
      DELETE FROM holdfast.waiters WHERE resource = res AND heard_at < at - interval '10 seconds';
      PERFORM holdfast.promote(res, '{}', at);
      PERFORM holdfast.drop_idle(ARRAY[res]);
      UPDATE holdfast.resources SET due_at = at WHERE name = res;
    END IF;
  END LOOP;
END $$;

-- What was left before this instant is idle. More than a century would exceed the range of dates.
CREATE OR REPLACE FUNCTION holdfast.idle_since(at timestamptz, keep_ms bigint) RETURNS timestamptz
LANGUAGE sql STABLE AS $$ SELECT at - holdfast.ms(least(keep_ms, 3153600000000)) $$;
