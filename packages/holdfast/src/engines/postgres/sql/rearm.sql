-- A repeat of the claim, or the first word of a waiter that was let in: a fresh life, which takes
-- nothing back from a renewal for longer. The answer is what the row says afterwards: a renewal takes no
-- lock of the resource, and may have changed the ttl since g was read.
CREATE OR REPLACE FUNCTION holdfast.rearm(g holdfast.grants, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT holdfast.foreign_mine(g.resource, g.grant_id) THEN RETURN '["gone", "expired"]'; END IF;
  UPDATE holdfast.grants
     SET expires_at = greatest(expires_at, at + holdfast.ms(ttl_ms))
   WHERE grant_id = g.grant_id
   RETURNING * INTO g;
  IF holdfast.foreign_kept(ARRAY[g.grant_id]) = '{}' THEN RETURN '["gone", "expired"]'; END IF;
  RETURN jsonb_build_array('granted', g.token::text, g.tokens, g.ttl_ms);
END $$;
