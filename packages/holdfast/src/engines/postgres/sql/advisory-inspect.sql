-- What is read of the session locks: see advisory.sql.

-- Holders, for people, in the format of the other routines. A lock of another program has no token and
-- no end.
CREATE OR REPLACE FUNCTION holdfast.advisory_holders(res text, wanted bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(h.view), '[]') FROM (
    SELECT jsonb_build_array(CASE WHEN a.shared THEN 's' ELSE 'x' END,
        (a.token + a.token_index)::text, a.label, greatest(0, a.ttl_ms - holdfast.ms_between(a.heard_at, clock_timestamp())), a.revoked) AS view
      FROM holdfast.advisory a
     WHERE a.resource = res AND a.key = wanted AND a.session IN (SELECT holdfast.advisory_keys())
    UNION ALL
    SELECT jsonb_build_array(CASE WHEN p.shared THEN 's' ELSE 'x' END, '0', '(another program)', 0, false)
      FROM holdfast.advisory_pids(wanted) p
     WHERE NOT EXISTS (SELECT FROM holdfast.advisory a WHERE a.key = wanted AND a.pid = p.pid)) h);
END $$;

CREATE OR REPLACE FUNCTION holdfast.advisory_check(res text, is_shared boolean, asked bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM holdfast.advisory a
    WHERE a.resource = res AND a.shared = is_shared AND NOT a.revoked
      AND asked >= a.token AND asked < a.token + a.tokens AND holdfast.advisory_lives(a.session));
END $$;

CREATE OR REPLACE FUNCTION holdfast.advisory_look(res text, named text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
  RETURN jsonb_build_array(holdfast.advisory_holders(res, holdfast.advisory_key(named)), '[]'::jsonb, 0);
END $$;

CREATE OR REPLACE FUNCTION holdfast.advisory_page(
  after text, prefix text, most integer) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
  RETURN (SELECT jsonb_build_array('page', coalesce(jsonb_agg(jsonb_build_array(p.resource,
      jsonb_build_array(holdfast.advisory_holders(p.resource, p.key), '[]'::jsonb, 0))
      ORDER BY p.resource), '[]'))
    FROM (SELECT DISTINCT resource, key FROM holdfast.advisory
           WHERE resource > after AND resource >= prefix ORDER BY resource LIMIT most) p
   WHERE starts_with(p.resource, prefix));
END $$;
