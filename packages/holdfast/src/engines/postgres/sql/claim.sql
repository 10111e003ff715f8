-- One claim: granted, or busy; with enqueue in line until it is its turn.
-- op    verb acquire|enqueue, name, id, shared, limit (0: none), ttl, delay, tokens, label,
--       channel, pace: ms after which the head of the line looks by itself
-- Gives granted token tokens ttl | busy retryMs holders | queued position nextMs holders
--       | gone why | limit inUse
CREATE OR REPLACE FUNCTION holdfast.claim(op jsonb, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  res text := op->>'name';
  id uuid := (op->>'id')::uuid;
  is_shared boolean := (op->>'shared')::boolean;
  wanted bigint := (op->>'limit')::bigint;
  ttl bigint := (op->>'ttl')::bigint;
  waits boolean := op->>'verb' = 'enqueue';
  g holdfast.grants;
  other bigint;
  held bigint;
  writer boolean;
BEGIN
  IF EXISTS (SELECT FROM holdfast.tombstones t WHERE t.grant_id = id AND t.until > at) THEN
    RETURN '["gone", "unknown"]';
  END IF;
  SELECT * INTO g FROM holdfast.grants
   WHERE grant_id = id AND resource = res AND expires_at > at;
  IF FOUND THEN
    IF g.revoked THEN RETURN '["gone", "revoked"]'; END IF;
    RETURN holdfast.rearm(g, at);
  END IF;
  IF EXISTS (SELECT FROM holdfast.waiters w WHERE w.grant_id = id AND w.resource = res) THEN
    IF waits THEN RETURN holdfast.queued(res, id, (op->>'pace')::integer, at); END IF;
    RETURN jsonb_build_array('busy', 1000, holdfast.holders(res, at));
  END IF;
  -- All shared claims that are alive carry one limit.
  SELECT b.limit_to INTO other FROM (
    SELECT limit_to FROM holdfast.grants WHERE resource = res AND shared AND expires_at > at
    UNION ALL
    SELECT limit_to FROM holdfast.waiters
     WHERE resource = res AND shared AND heard_at > at - interval '10 seconds') b
   WHERE b.limit_to <> wanted LIMIT 1;
  IF FOUND AND is_shared THEN RETURN jsonb_build_array('limit', other); END IF;
  PERFORM holdfast.promote(res, '{}', at);
  IF NOT EXISTS (SELECT FROM holdfast.waiters w
                  WHERE w.resource = res AND holdfast.is_fresh(w.heard_at, at)) THEN
    SELECT count(*), coalesce(bool_or(NOT b.shared), false) INTO held, writer
      FROM holdfast.grants b WHERE b.resource = res;
    IF holdfast.fits(held, writer, is_shared, wanted) THEN
      RETURN jsonb_build_array('granted', holdfast.give(id, res, is_shared, wanted,
        (op->>'tokens')::integer, ttl, (op->>'delay')::bigint, op->>'label', ttl, at)::text,
        (op->>'tokens')::integer, ttl);
    END IF;
  END IF;
  IF NOT waits THEN
    RETURN jsonb_build_array('busy', holdfast.next_ms(res, 1000, at), holdfast.holders(res, at));
  END IF;
  INSERT INTO holdfast.waiters (grant_id, resource, shared, limit_to, tokens, ttl_ms, delay_ms,
      heard_at, channel, label)
    VALUES (id, res, is_shared, wanted, (op->>'tokens')::integer, ttl, (op->>'delay')::bigint, at,
      op->>'channel', op->>'label');
  RETURN holdfast.queued(res, id, (op->>'pace')::integer, at);
END $$;
