-- One claim: granted or busy; with enqueue, queued until its turn.
-- op    verb acquire|enqueue, name, id, shared, limit (0: none), ttl, delay, tokens, label,
--       channel, pace: the poll interval of the head of the queue, in ms
-- Gives granted token tokens ttl | busy retryMs holders | queued position nextMs holders
--       | gone why | limit inUse
CREATE OR REPLACE FUNCTION holdfast.claim(op jsonb, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  res text := op->>'name';
  waits boolean := op->>'verb' = 'enqueue';
  pace_ms integer := (op->>'pace')::integer;
  w holdfast.waiters;
  g holdfast.grants;
  other bigint;
  held bigint;
  writer boolean;
  ends timestamptz;
  was_here boolean := false;
BEGIN
  w.grant_id := (op->>'id')::uuid;
  w.resource := res;
  w.shared := (op->>'shared')::boolean;
  w.limit_to := (op->>'limit')::bigint;
  w.tokens := (op->>'tokens')::integer;
  w.ttl_ms := (op->>'ttl')::bigint;
  w.delay_ms := (op->>'delay')::bigint;
  w.label := op->>'label';
  -- The usual case: no holder, no waiter, and no tombstone of this claim.
  IF NOT EXISTS (
       SELECT FROM holdfast.grants b WHERE b.resource = res
       UNION ALL SELECT FROM holdfast.waiters l WHERE l.resource = res
       UNION ALL SELECT FROM holdfast.tombstones t WHERE t.grant_id = w.grant_id) THEN
    IF holdfast.foreign_take(
        res, w.grant_id, w.label, at + holdfast.ms(w.ttl_ms + w.delay_ms), at) THEN
      RETURN jsonb_build_array('granted', holdfast.give(w, w.ttl_ms, at)::text, w.tokens, w.ttl_ms);
    END IF;
  END IF;
  -- A repeated claim: released, granted or queued before.
  IF EXISTS (
       SELECT FROM holdfast.tombstones t WHERE t.grant_id = w.grant_id
       UNION ALL SELECT FROM holdfast.grants b WHERE b.grant_id = w.grant_id
       UNION ALL SELECT FROM holdfast.waiters l WHERE l.grant_id = w.grant_id) THEN
    IF EXISTS (SELECT FROM holdfast.tombstones t WHERE t.grant_id = w.grant_id AND t.until > at) THEN
      PERFORM holdfast.drop_idle(ARRAY[res]);
      RETURN '["gone", "unknown"]';
    END IF;
    SELECT * INTO g FROM holdfast.grants
     WHERE grant_id = w.grant_id AND resource = res AND expires_at > at;
    IF FOUND THEN
      IF g.is_left THEN RETURN '["gone", "unknown"]'; END IF;
      IF g.revoked THEN RETURN '["gone", "revoked"]'; END IF;
      RETURN holdfast.rearm(g, at);
    END IF;
    was_here := true;
    IF EXISTS (SELECT FROM holdfast.waiters l WHERE l.grant_id = w.grant_id AND l.resource = res) THEN
      IF waits THEN RETURN holdfast.heard_again(w.grant_id, res, op->>'channel', pace_ms, at); END IF;
      RETURN jsonb_build_array('busy', 1000, holdfast.holders(res, at, 16));
    END IF;
  END IF;
  SELECT p.held, p.writer INTO held, writer FROM holdfast.promote(res, '{}', at) p;
  -- Its grant is over but still exists: in its lock-delay, or because another transaction has locked
  -- it.
  IF was_here AND EXISTS (SELECT FROM holdfast.grants b WHERE b.grant_id = w.grant_id) THEN
    RETURN '["gone", "expired"]';
  END IF;
  IF w.shared THEN
    other := holdfast.limit_in_use(res, at);
    IF other <> w.limit_to THEN RETURN jsonb_build_array('limit', other); END IF;
  END IF;
  ends := at + holdfast.ms(w.ttl_ms + w.delay_ms);
  IF holdfast.fits(held, writer, w.shared, w.limit_to)
     AND NOT EXISTS (SELECT FROM holdfast.waiters l
                      WHERE l.resource = res AND holdfast.is_fresh(l.heard_at, at)) THEN
    IF holdfast.foreign_take(res, w.grant_id, w.label, ends, at) THEN
      IF held > 0 THEN PERFORM holdfast.count_on(res, 1, ends, at); END IF;
      RETURN jsonb_build_array('granted', holdfast.give(w, w.ttl_ms, at)::text, w.tokens, w.ttl_ms);
    END IF;
  END IF;
  IF NOT waits THEN
    RETURN jsonb_build_array('busy', holdfast.next_ms(res, 0, 1000, at), holdfast.holders(res, at, 16));
  END IF;
  INSERT INTO holdfast.waiters (grant_id, resource, shared, limit_to, tokens, ttl_ms, delay_ms,
      heard_at, channel, label, nth)
    VALUES (w.grant_id, res, w.shared, w.limit_to, w.tokens, w.ttl_ms, w.delay_ms,
      at, op->>'channel', w.label, coalesce((SELECT l.nth + 1 FROM holdfast.waiters l
        WHERE l.resource = res ORDER BY l.place DESC LIMIT 1), 0));
  RETURN holdfast.queued(res, w.grant_id, pace_ms, at);
END $$;

-- The limit of the living shared claims. All have the same one, so any of them tells it; null if there
-- is none. The latest come first, because they are most likely alive.
CREATE OR REPLACE FUNCTION holdfast.limit_in_use(res text, at timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(
    (SELECT limit_to FROM holdfast.grants
      WHERE resource = res AND shared AND expires_at > at ORDER BY token DESC LIMIT 1),
    (SELECT limit_to FROM holdfast.waiters
      WHERE resource = res AND shared AND heard_at > at - interval '10 seconds' LIMIT 1));
END $$;

-- Repeats the enqueue of a queued claim. It counts as a heartbeat and looks for its turn. Its beat
-- stays as it was, so that a push counts from a heartbeat that was sent before.
CREATE OR REPLACE FUNCTION holdfast.heard_again(
  id uuid, res text, listens text, pace_ms integer, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  g holdfast.grants;
BEGIN
  UPDATE holdfast.waiters SET heard_at = at, channel = listens WHERE grant_id = id;
  PERFORM holdfast.promote(res, ARRAY[id], at);
  SELECT * INTO g FROM holdfast.grants WHERE grant_id = id;
  IF FOUND THEN RETURN holdfast.rearm(g, at); END IF;
  RETURN holdfast.queued(res, id, pace_ms, at);
END $$;
