-- Releases a grant whose claim was answered, so that no tombstone is needed: the path of a hand-over
-- between two writers. Does what release does, in as few statements as possible.
-- Gives released none | gone why
CREATE OR REPLACE FUNCTION holdfast.hand_over(
  res text, id uuid, wait_ms integer, keep_ms bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  locked boolean := holdfast.lock_resource(res, true, wait_ms);
  at timestamptz := clock_timestamp();
  done boolean;
  w holdfast.waiters;
  life_ms bigint;
BEGIN
  DELETE FROM holdfast.grants
   WHERE grant_id = id AND resource = res AND expires_at > at AND NOT shared
     AND NOT is_left;
  IF NOT FOUND THEN
    RETURN holdfast.carry_out(
      jsonb_build_object('verb', 'release', 'name', res, 'id', id, 'tombstone', 0), at, keep_ms);
  END IF;
  done := holdfast.foreign_free(res, id, at);
  SELECT * INTO w FROM holdfast.waiters
   WHERE resource = res AND holdfast.is_fresh(heard_at, at) ORDER BY place LIMIT 1;
  IF w.shared THEN
    -- Readers are let in together.
    PERFORM holdfast.let_in(res, 0, '{}', at);
  ELSIF w.grant_id IS NULL THEN
    PERFORM holdfast.drop_idle(ARRAY[res]);
  ELSE
    life_ms := least(w.ttl_ms, 3000);
    IF holdfast.foreign_take(
        res, w.grant_id, w.label, at + holdfast.ms(life_ms + w.delay_ms), at) THEN
      done := holdfast.succeed(w, life_ms, at);
    END IF;
  END IF;
  IF random() < 0.05 THEN PERFORM holdfast.sweep(keep_ms); END IF;
  RETURN '["released", []]';
END $$;

-- Makes a waiter the holder, and notifies its process.
CREATE OR REPLACE FUNCTION holdfast.succeed(w holdfast.waiters, life_ms bigint, at timestamptz)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  token bigint := holdfast.give(w, life_ms, at);
BEGIN
  DELETE FROM holdfast.waiters WHERE grant_id = w.grant_id;
  IF w.channel <> '' THEN
    PERFORM pg_notify(w.channel,
      concat_ws(' ', replace(w.grant_id::text, '-', ''), w.beat, token, w.tokens, life_ms));
  END IF;
  RETURN true;
END $$;
