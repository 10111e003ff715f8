-- Removes a grant or a waiter, and grants to the waiters that become eligible. forced: also removes a
-- grant that its holder left, which otherwise ends by time alone.
CREATE OR REPLACE FUNCTION holdfast.finish(res text, id uuid, forced boolean, at timestamptz)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  was_shared boolean;
  was_holder boolean;
  held bigint;
BEGIN
  DELETE FROM holdfast.grants
   WHERE grant_id = id AND resource = res AND expires_at > at AND (forced OR NOT is_left)
    RETURNING shared INTO was_shared;
  was_holder := FOUND;
  IF was_holder THEN
    PERFORM holdfast.foreign_free(res, id, at);
  ELSE
    DELETE FROM holdfast.waiters WHERE grant_id = id AND resource = res;
    IF NOT FOUND THEN RETURN false; END IF;
    was_shared := true;
  END IF;
  -- A writer was the only holder, so there is nobody to count.
  IF was_shared THEN
    IF was_holder THEN PERFORM holdfast.count_on(res, -1, 'infinity', at); END IF;
    SELECT p.held INTO held FROM holdfast.promote(res, '{}', at) p;
  ELSE
    SELECT l.held INTO held FROM holdfast.let_in(res, 0, '{}', at) l;
  END IF;
  IF held = 0 THEN PERFORM holdfast.drop_idle(ARRAY[res]); END IF;
  RETURN true;
END $$;

-- op    name, id, tombstone: ms for which a late claim of this id is refused
-- Gives released none | gone why. Waiters get a notification
CREATE OR REPLACE FUNCTION holdfast.release(op jsonb, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  res text := op->>'name';
  id uuid := (op->>'id')::uuid;
  tombstone bigint := (op->>'tombstone')::bigint;
BEGIN
  IF tombstone > 0 THEN
    INSERT INTO holdfast.tombstones AS t VALUES (id, at + holdfast.ms(tombstone))
      ON CONFLICT (grant_id) DO UPDATE SET until = greatest(t.until, excluded.until);
  END IF;
  IF holdfast.finish(res, id, false, at) THEN RETURN '["released", []]'; END IF;
  PERFORM holdfast.drop_idle(ARRAY[res]);
  RETURN holdfast.why_gone(res, id, at);
END $$;

-- op    name, id
-- Gives withdrawn none | granted token tokens ttl
CREATE OR REPLACE FUNCTION holdfast.withdraw(op jsonb, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  res text := op->>'name';
  id uuid := (op->>'id')::uuid;
  g holdfast.grants;
  answer jsonb;
BEGIN
  SELECT * INTO g FROM holdfast.grants
   WHERE grant_id = id AND resource = res AND expires_at > at AND NOT revoked AND NOT is_left;
  IF FOUND THEN
    answer := holdfast.rearm(g, at);
    IF answer->>0 = 'granted' THEN RETURN answer; END IF;
  END IF;
  -- Removes only the waiter: a withdrawal that is delivered twice must not end a grant in use.
  DELETE FROM holdfast.waiters WHERE grant_id = id AND resource = res;
  IF FOUND THEN PERFORM holdfast.promote(res, '{}', at); END IF;
  PERFORM holdfast.drop_idle(ARRAY[res]);
  RETURN '["withdrawn", []]';
END $$;

-- Only the token in use can be revoked: a holder with an earlier token of the grant has passed it on.
-- op    name, token, force, changes: the channel on which holders are notified
-- Gives revoked | gone
CREATE OR REPLACE FUNCTION holdfast.revoke(op jsonb, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  res text := op->>'name';
  asked bigint := (op->>'token')::bigint;
  id uuid;
BEGIN
  SELECT g.grant_id INTO id FROM holdfast.grant_of(res, asked) g
   WHERE g.expires_at > at AND asked = g.token + g.token_index;
  IF NOT FOUND THEN
    PERFORM holdfast.drop_idle(ARRAY[res]);
    RETURN '["gone"]';
  END IF;
  IF (op->>'force')::boolean THEN
    PERFORM holdfast.finish(res, id, true, at);
  ELSE
    UPDATE holdfast.grants SET revoked = true WHERE grant_id = id;
  END IF;
  PERFORM pg_notify(op->>'changes', res);
  RETURN '["revoked"]';
END $$;
