-- Gives gone why
CREATE OR REPLACE FUNCTION holdfast.why_gone(res text, id uuid, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
  g holdfast.grants;
BEGIN
  SELECT * INTO g FROM holdfast.grants WHERE grant_id = id AND resource = res;
  RETURN jsonb_build_array('gone', CASE
    WHEN g.revoked AND g.expires_at > at THEN 'revoked'
    WHEN g.grant_id IS NOT NULL THEN 'expired'
    WHEN EXISTS (SELECT FROM holdfast.grants WHERE resource = res) THEN 'replaced'
    ELSE 'expired' END);
END $$;

-- The grant to which this token belongs. Ranges do not overlap, so it is the grant with the greatest
-- first token that is not greater than this one.
CREATE OR REPLACE FUNCTION holdfast.grant_of(res text, asked bigint) RETURNS SETOF holdfast.grants
LANGUAGE sql STABLE AS $$
  SELECT * FROM (SELECT * FROM holdfast.grants
    WHERE resource = res AND token <= asked ORDER BY token DESC LIMIT 1) g
   WHERE asked < g.token + g.tokens
$$;
