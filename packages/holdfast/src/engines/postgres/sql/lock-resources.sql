-- Locks resources until the transaction ends, the same way round for everybody. Every turn changes
-- the row: a transaction that reads from an older snapshot then fails instead of deciding by it.
CREATE OR REPLACE FUNCTION holdfast.lock_resources(names text[], wait_ms integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  -- What was granted must still be so after a crash, whatever the session prefers elsewhere.
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM set_config('lock_timeout', wait_ms::text, true);
  IF cardinality(names) = 1 THEN
    INSERT INTO holdfast.resources AS r (name) VALUES (names[1])
      ON CONFLICT (name) DO UPDATE SET turns = r.turns + 1;
    RETURN;
  END IF;
  INSERT INTO holdfast.resources AS r (name)
    SELECT DISTINCT n COLLATE "C" AS n FROM unnest(names) AS n ORDER BY n
    ON CONFLICT (name) DO UPDATE SET turns = r.turns + 1;
END $$;
