-- Answers a repeated claim, or the first heartbeat of a waiter that was let in: the grant gets a fresh
-- ttl, and keeps a longer one that a renewal gave it. The answer is what the row says afterwards,
-- because a renewal does not lock the resource and may have changed the ttl since g was read.
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
