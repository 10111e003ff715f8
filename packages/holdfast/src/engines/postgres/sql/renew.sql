-- Prolongs grants that are alive. Each is an element of three arrays: name, id, ttl. Waits for nobody:
-- one that is locked at this moment is answered with locked, and the others do not suffer from it.
-- Gives for each renewed | locked | gone why
CREATE OR REPLACE FUNCTION holdfast.renew(names text[], ids uuid[], ttls bigint[]) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  answers jsonb;
BEGIN
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  WITH asked AS (
    SELECT name, id, ttl, n FROM unnest(names, ids, ttls) WITH ORDINALITY AS a(name, id, ttl, n)
  ), free AS MATERIALIZED (
    SELECT g.grant_id FROM holdfast.grants g JOIN asked a ON g.grant_id = a.id AND g.resource = a.name
       FOR NO KEY UPDATE OF g SKIP LOCKED
  ), renewed AS (
    UPDATE holdfast.grants g
       SET ttl_ms = a.ttl, expires_at = clock_timestamp() + holdfast.ms(a.ttl)
      FROM asked a, free f
     WHERE g.grant_id = a.id AND f.grant_id = a.id
       AND g.expires_at > clock_timestamp() AND NOT g.revoked
       AND holdfast.foreign_mine(g.resource, g.grant_id)
    RETURNING g.grant_id
  )
  SELECT jsonb_agg(CASE
      WHEN r.grant_id IS NOT NULL THEN '["renewed"]'
      WHEN f.grant_id IS NULL AND g.grant_id IS NOT NULL THEN '["locked"]'
      ELSE holdfast.why_gone(a.name, a.id, clock_timestamp()) END ORDER BY a.n)
    INTO answers
    FROM asked a
    LEFT JOIN free f ON f.grant_id = a.id
    LEFT JOIN renewed r ON r.grant_id = a.id
    LEFT JOIN holdfast.grants g ON g.grant_id = a.id AND g.resource = a.name;
  PERFORM holdfast.foreign_keep(ids);
  RETURN coalesce(answers, '[]');
END $$;
