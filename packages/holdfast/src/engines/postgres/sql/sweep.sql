-- Frees a little of what nobody came back for. Waits for nobody.
CREATE OR REPLACE FUNCTION holdfast.sweep() RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  at timestamptz := clock_timestamp();
  res text;
  oldest timestamptz;
BEGIN
  DELETE FROM holdfast.tombstones WHERE grant_id IN (
    SELECT grant_id FROM holdfast.tombstones
     WHERE until < at ORDER BY until LIMIT 200 FOR UPDATE SKIP LOCKED);
  FOR res IN
    SELECT name FROM holdfast.resources
     WHERE due_at < at ORDER BY due_at LIMIT 50 FOR UPDATE SKIP LOCKED
  LOOP
    oldest := least(
      (SELECT min(expires_at + holdfast.ms(delay_ms)) FROM holdfast.grants WHERE resource = res),
      (SELECT min(heard_at) FROM holdfast.waiters WHERE resource = res));
    IF oldest > at - interval '1 minute' THEN
      UPDATE holdfast.resources SET due_at = oldest + interval '1 minute' WHERE name = res;
    ELSE
      DELETE FROM holdfast.waiters WHERE resource = res AND heard_at < at - interval '10 seconds';
      PERFORM holdfast.promote(res, '{}', at);
      PERFORM holdfast.drop_idle(ARRAY[res]);
      UPDATE holdfast.resources SET due_at = at + interval '1 minute' WHERE name = res;
    END IF;
  END LOOP;
END $$;
