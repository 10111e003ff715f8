-- Locks resources until the transaction ends, in the same order for everybody. Every turn changes the
-- row, so that a transaction that reads from an older snapshot fails instead of deciding by it.
CREATE OR REPLACE FUNCTION holdfast.lock_resources(names text[], wait_ms integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  done text := holdfast.prepare_turn(wait_ms);
BEGIN
  INSERT INTO holdfast.resources AS r (name)
    SELECT DISTINCT n COLLATE "C" AS n FROM unnest(names) AS n ORDER BY n
    ON CONFLICT (name) DO UPDATE SET turns = r.turns + 1;
END $$;

-- Like lock_resources, for one resource. known: whether its row probably exists.
CREATE OR REPLACE FUNCTION holdfast.lock_resource(res text, known boolean, wait_ms integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  done text := holdfast.prepare_turn(wait_ms);
BEGIN
  IF known THEN
    UPDATE holdfast.resources SET turns = turns + 1 WHERE name = res;
    IF FOUND THEN RETURN true; END IF;
  END IF;
  INSERT INTO holdfast.resources AS r (name) VALUES (res)
    ON CONFLICT (name) DO UPDATE SET turns = r.turns + 1;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION holdfast.prepare_turn(wait_ms integer) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  done text;
BEGIN
  -- A grant must survive a crash, whatever the session's own setting is.
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    done := set_config('synchronous_commit', 'on', true);
  END IF;
  RETURN set_config('lock_timeout', wait_ms::text, true);
END $$;
