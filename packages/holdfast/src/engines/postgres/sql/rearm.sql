-- A repeat of the claim, or the first word of a waiter that was let in: a fresh life, which takes
-- nothing back from a renewal for longer.
CREATE OR REPLACE FUNCTION holdfast.rearm(g holdfast.grants, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE holdfast.grants
     SET expires_at = greatest(expires_at, at + holdfast.ms(ttl_ms))
   WHERE grant_id = g.grant_id;
  PERFORM holdfast.foreign_keep(ARRAY[g.grant_id]);
  RETURN jsonb_build_array('granted', g.token::text, g.tokens, g.ttl_ms);
END $$;
