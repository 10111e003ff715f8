-- Frees a little of what nobody came back for. Waits for nobody.
CREATE OR REPLACE FUNCTION holdfast.sweep() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz := clock_timestamp();
  res text;
BEGIN
  DELETE FROM holdfast.tombstones WHERE grant_id IN (
    SELECT grant_id FROM holdfast.tombstones WHERE until < at LIMIT 200 FOR UPDATE SKIP LOCKED);
  FOR res IN
    SELECT r.name FROM holdfast.resources r
     WHERE r.name IN (
       (SELECT resource FROM holdfast.grants
         WHERE expires_at + holdfast.ms(delay_ms) < at - interval '1 minute' LIMIT 50)
       UNION ALL
       (SELECT resource FROM holdfast.waiters WHERE heard_at < at - interval '1 minute' LIMIT 50))
       FOR UPDATE SKIP LOCKED
  LOOP
    DELETE FROM holdfast.waiters WHERE resource = res AND heard_at < at - interval '10 seconds';
    PERFORM holdfast.promote(res, '{}', at);
    PERFORM holdfast.drop_idle(ARRAY[res]);
  END LOOP;
END $$;
