-- Heartbeats of waiters. Each is an element of three arrays: name, id, number of its heartbeat.
-- listens: the channel on which their process listens; empty if it does not
-- pace_ms: the poll interval of the head of a queue
-- Gives for each granted token tokens ttl | queued position nextMs holders | unknown
CREATE OR REPLACE FUNCTION holdfast.heartbeat(
  names text[], ids uuid[], beats bigint[], listens text, pace_ms integer, wait_ms integer) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  at timestamptz;
  res text;
  answers jsonb;
  mine uuid[];
  kept uuid[];
BEGIN
  PERFORM holdfast.lock_resources(names, wait_ms);
  at := clock_timestamp();
  -- Heartbeats may overtake each other. Validity counts from the latest one that was carried out.
  UPDATE holdfast.waiters w
     SET heard_at = at, beat = greatest(w.beat, b.beat), channel = listens
    FROM unnest(names, ids, beats) AS b(name, id, beat)
   WHERE w.grant_id = b.id AND w.resource = b.name;
  FOR res IN SELECT DISTINCT n FROM unnest(names) n LOOP
    PERFORM holdfast.drop_silent(res, at);
    PERFORM holdfast.promote(res, ids, at);
  END LOOP;
  WITH asked AS (
    SELECT name, id, n FROM unnest(names, ids) WITH ORDINALITY AS a(name, id, n)
  ), granted AS (
    UPDATE holdfast.grants g SET expires_at = greatest(g.expires_at, at + holdfast.ms(g.ttl_ms))
      FROM asked a
     WHERE g.grant_id = a.id AND g.resource = a.name AND g.expires_at > at AND NOT g.revoked
       AND NOT g.is_left AND holdfast.foreign_mine(g.resource, g.grant_id)
    RETURNING g.grant_id, g.token, g.tokens, g.ttl_ms
  ), contexts AS (
    SELECT r.name, holdfast.holders(r.name, at, 16) AS present,
        holdfast.next_ms(r.name, 0, pace_ms, at) AS next_ms
      FROM (SELECT DISTINCT name FROM asked) r
  )
  SELECT jsonb_agg(CASE
      WHEN m.grant_id IS NOT NULL
        THEN jsonb_build_array('granted', m.token::text, m.tokens, m.ttl_ms)
      WHEN l.grant_id IS NOT NULL
        THEN jsonb_build_array('queued', l.ahead,
          CASE WHEN l.fresh = 0 THEN s.next_ms ELSE least(1000, pace_ms * (l.fresh + 1)) END,
          s.present)
      ELSE '["unknown"]' END ORDER BY a.n),
      array_agg(m.grant_id) FILTER (WHERE m.grant_id IS NOT NULL)
    INTO answers, mine
    FROM asked a
    LEFT JOIN granted m ON m.grant_id = a.id
    LEFT JOIN holdfast.standing(names, ids, at) l ON l.grant_id = a.id AND l.resource = a.name
    LEFT JOIN contexts s ON s.name = a.name;
  kept := holdfast.foreign_kept(mine);
  IF kept <> mine THEN answers := holdfast.without(answers, ids, mine, kept, '["unknown"]'); END IF;
  PERFORM holdfast.drop_idle(names);
  RETURN coalesce(answers, '[]');
END $$;

-- Removes dead waiters from the head of a queue; those further back when they get there. One look is
-- enough if there are none, however long the queue is.
CREATE OR REPLACE FUNCTION holdfast.drop_silent(res text, at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  FOR attempt IN 1 .. 100 LOOP
    DELETE FROM holdfast.waiters WHERE grant_id IN (
      SELECT f.grant_id FROM (SELECT grant_id, heard_at FROM holdfast.waiters
          WHERE resource = res ORDER BY place LIMIT 20) f
       WHERE f.heard_at < at - interval '10 seconds');
    EXIT WHEN NOT FOUND;
  END LOOP;
END $$;
