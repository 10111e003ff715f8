-- Holders, for people: mode, token in use, label, remaining ms, whether revoked. most: how many at
-- most, null for all. Answers to claims name a few, because nobody reads 2,000 names.
CREATE OR REPLACE FUNCTION holdfast.holders(res text, at timestamptz, most integer) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_array(CASE WHEN shared THEN 's' ELSE 'x' END,
      (token + token_index)::text, label, holdfast.ms_between(at, expires_at), revoked)
      ORDER BY token), '[]')
    FROM (SELECT * FROM holdfast.grants WHERE resource = res AND expires_at > at
           ORDER BY token LIMIT most) g) || holdfast.foreign_holder(res, at);
END $$;

-- When a waiter must poll. An expiry notifies nobody, so the head polls at that time. Without
-- notifications the head polls at its interval, and the others more rarely the further back they are.
CREATE OR REPLACE FUNCTION holdfast.next_ms(res text, before bigint, pace_ms integer, at timestamptz)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  ends timestamptz;
BEGIN
  IF before > 0 THEN RETURN least(1000, pace_ms * (before + 1)); END IF;
  -- Other programs notify nobody when they finish.
  IF holdfast.foreign_holder(res, at) <> '[]' THEN RETURN 75; END IF;
  -- With many holders this is when they are counted again, which finds the expired ones.
  SELECT counted_until INTO ends FROM holdfast.resources WHERE name = res AND counted_until > at;
  IF NOT FOUND THEN
    SELECT min(expires_at + holdfast.ms(delay_ms)) INTO ends FROM holdfast.grants WHERE resource = res;
  END IF;
  RETURN greatest(5, least(pace_ms, holdfast.ms_between(at, ends)));
END $$;

-- The positions of waiters: how many are ahead of each, and how many of those sent a heartbeat lately.
-- Near the head they are counted. Further back, waiters that gave up in between count too, because
-- counting costs as much as there are rows.
CREATE OR REPLACE FUNCTION holdfast.standing(names text[], ids uuid[], at timestamptz)
RETURNS TABLE (grant_id uuid, resource text, ahead bigint, fresh bigint)
LANGUAGE sql STABLE AS $$
  WITH heads AS MATERIALIZED (
    SELECT r.name, h.nth FROM (SELECT DISTINCT n AS name FROM unnest(names) n) r
     CROSS JOIN LATERAL (SELECT nth FROM holdfast.waiters
       WHERE resource = r.name ORDER BY place LIMIT 1) h
  )
  SELECT w.grant_id, w.resource,
      CASE WHEN w.nth - h.nth < 50 THEN c.ahead ELSE w.nth - h.nth END,
      CASE WHEN w.nth - h.nth < 50 THEN c.fresh ELSE w.nth - h.nth END
    FROM unnest(ids) AS i(id)
    -- OFFSET 0 makes the planner find each by its id. Without statistics it may read the whole queue
    -- instead.
    CROSS JOIN LATERAL (SELECT * FROM holdfast.waiters o WHERE o.grant_id = i.id OFFSET 0) w
    JOIN heads h ON h.name = w.resource
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE b.heard_at > at - interval '10 seconds') AS ahead,
          count(*) FILTER (WHERE holdfast.is_fresh(b.heard_at, at)) AS fresh
        FROM holdfast.waiters b
       WHERE b.resource = w.resource AND b.place < w.place AND w.nth - h.nth < 50) c
$$;

-- Gives queued position nextMs holders
CREATE OR REPLACE FUNCTION holdfast.queued(res text, id uuid, pace_ms integer, at timestamptz)
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT jsonb_build_array('queued', s.ahead, holdfast.next_ms(res, s.fresh, pace_ms, at),
      holdfast.holders(res, at, 16))
    FROM holdfast.standing(ARRAY[res], ARRAY[id], at) s);
END $$;

-- Gives holders, waiters as mode label, ms for which a lock-delay keeps it closed
CREATE OR REPLACE FUNCTION holdfast.inspect(res text, at timestamptz DEFAULT clock_timestamp())
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT jsonb_build_array(
      holdfast.holders(res, at, NULL),
      (SELECT coalesce(jsonb_agg(
           jsonb_build_array(CASE WHEN shared THEN 's' ELSE 'x' END, label) ORDER BY place), '[]')
         FROM holdfast.waiters WHERE resource = res AND heard_at > at - interval '10 seconds'),
      (SELECT coalesce(greatest(0, max(holdfast.ms_between(at, expires_at + holdfast.ms(delay_ms)))), 0)
         FROM holdfast.grants WHERE resource = res AND expires_at <= at)));
END $$;

-- Names with a common prefix are adjacent, so only rows of the page are read.
-- Gives page, and an array of names, each with what inspect gives
CREATE OR REPLACE FUNCTION holdfast.list(after text, prefix text, most integer) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT jsonb_build_array('page',
        coalesce(jsonb_agg(jsonb_build_array(name, holdfast.inspect(name)) ORDER BY name), '[]'))
      FROM (SELECT name FROM holdfast.resources
             WHERE name > after AND name >= prefix ORDER BY name LIMIT most) page
     WHERE starts_with(name, prefix));
END $$;
