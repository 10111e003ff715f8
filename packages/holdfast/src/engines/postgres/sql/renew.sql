-- Renews living grants. Each is an element of five arrays: name, id, ttl, index of the token in use,
-- whether its holder leaves it. ord: the number of the call; a renewal that arrives after a later one
-- changes nothing. Grants that nobody has locked are renewed without waiting. For the others it waits
-- once, for wait_ms at most.
-- Gives for each renewed ms | locked | gone why
CREATE OR REPLACE FUNCTION holdfast.renew(names text[], ids uuid[], ttls bigint[], indexes integer[],
  leaves boolean[], ord bigint, wait_ms integer) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  answers jsonb;
  n integer;
BEGIN
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  answers := holdfast.renew_free(names, ids, ttls, indexes, leaves, ord);
  IF answers @> '[["locked"]]' THEN
    PERFORM holdfast.wait_for_grants(ids, wait_ms);
    FOR n IN 1 .. cardinality(ids) LOOP
      CONTINUE WHEN answers->(n - 1) <> '["locked"]';
      answers := jsonb_set(answers, ARRAY[(n - 1)::text], holdfast.renew_free(
        names[n:n], ids[n:n], ttls[n:n], indexes[n:n], leaves[n:n], ord)->0);
    END LOOP;
  END IF;
  RETURN answers;
END $$;

-- Waits until nobody else has locked any of these grants, or until the time is over.
CREATE OR REPLACE FUNCTION holdfast.wait_for_grants(ids uuid[], wait_ms integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('lock_timeout', wait_ms::text, true);
  PERFORM FROM holdfast.grants WHERE grant_id = ANY (ids) ORDER BY grant_id FOR NO KEY UPDATE;
EXCEPTION
  WHEN lock_not_available THEN NULL;
END $$;

-- Like renew, but answers `locked` for locked grants. A grant that was left can only be left again. A
-- revoked grant is renewed for a token after the one that was in use: the revocation was meant for a
-- holder that has passed its lease on.
CREATE OR REPLACE FUNCTION holdfast.renew_free(names text[], ids uuid[], ttls bigint[], indexes integer[],
  leaves boolean[], ord bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  answers jsonb;
  mine uuid[];
  kept uuid[];
BEGIN
  WITH asked AS (
    SELECT name, id, ttl, in_use, leave, n
      FROM unnest(names, ids, ttls, indexes, leaves) WITH ORDINALITY AS a(name, id, ttl, in_use, leave, n)
  ), free AS MATERIALIZED (
    SELECT g.grant_id, g.expires_at, g.renewal_order, g.revoked,
        (NOT g.is_left OR a.leave) AND (NOT g.revoked OR a.in_use > g.token_index)
          AND holdfast.foreign_mine(g.resource, g.grant_id) AS may
      FROM holdfast.grants g JOIN asked a ON g.grant_id = a.id AND g.resource = a.name
       FOR NO KEY UPDATE OF g SKIP LOCKED
  ), renewed AS (
    UPDATE holdfast.grants g
       SET ttl_ms = a.ttl, expires_at = clock_timestamp() + holdfast.ms(a.ttl), renewal_order = ord,
           token_index = greatest(g.token_index, a.in_use), is_left = a.leave, revoked = false
      FROM asked a, free f
     WHERE g.grant_id = a.id AND f.grant_id = a.id AND f.may AND f.renewal_order <= ord
       AND g.expires_at > clock_timestamp()
    RETURNING g.grant_id
  )
  SELECT jsonb_agg(CASE
      WHEN r.grant_id IS NOT NULL THEN jsonb_build_array('renewed', a.ttl)
      WHEN f.grant_id IS NULL AND g.grant_id IS NOT NULL THEN '["locked"]'
      WHEN f.may AND f.renewal_order > ord AND f.expires_at > clock_timestamp()
        THEN jsonb_build_array('renewed', holdfast.ms_left(f.expires_at))
      -- Read from the locked row: another statement may see the row as it was before the revocation.
      WHEN f.revoked AND f.expires_at > clock_timestamp() THEN '["gone", "revoked"]'
      ELSE holdfast.why_gone(a.name, a.id, clock_timestamp()) END ORDER BY a.n),
      array_agg(r.grant_id) FILTER (WHERE r.grant_id IS NOT NULL)
    INTO answers, mine
    FROM asked a
    LEFT JOIN free f ON f.grant_id = a.id
    LEFT JOIN renewed r ON r.grant_id = a.id
    LEFT JOIN holdfast.grants g ON g.grant_id = a.id AND g.resource = a.name;
  kept := holdfast.foreign_kept(mine);
  IF kept <> mine THEN
    answers := holdfast.without(answers, ids, mine, kept, '["gone", "expired"]');
  END IF;
  RETURN coalesce(answers, '[]');
END $$;

-- Replaces the answers of those of mine that were not kept: their time ran out in another program's
-- table between two statements of ours.
CREATE OR REPLACE FUNCTION holdfast.without(
  answers jsonb, ids uuid[], mine uuid[], kept uuid[], instead jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_agg(CASE WHEN i.id = ANY (mine) AND NOT i.id = ANY (kept) THEN instead ELSE a.answer END
      ORDER BY a.n)
    FROM jsonb_array_elements(answers) WITH ORDINALITY AS a(answer, n)
    JOIN unnest(ids) WITH ORDINALITY AS i(id, n) ON i.n = a.n
$$;
