-- Gives gone why
CREATE OR REPLACE FUNCTION holdfast.why_gone(res text, id uuid, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT jsonb_build_array('gone', CASE
      WHEN bool_or(grant_id = id AND revoked AND expires_at > at) THEN 'revoked'
      WHEN bool_or(grant_id = id) THEN 'expired'
      WHEN count(*) > 0 THEN 'replaced'
      ELSE 'expired' END)
    FROM holdfast.grants WHERE resource = res);
END $$;
