-- Creates a grant for a waiter, or for a claim in the shape of one. The grant lives life_ms from now
-- on. Returns its first token.
CREATE OR REPLACE FUNCTION holdfast.give(w holdfast.waiters, life_ms bigint, at timestamptz)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  first bigint := nextval('holdfast.tokens');
BEGIN
  INSERT INTO holdfast.grants
    (grant_id, resource, shared, limit_to, token, tokens, ttl_ms, delay_ms, expires_at, label)
  VALUES (w.grant_id, w.resource, w.shared, w.limit_to, first, w.tokens, w.ttl_ms, w.delay_ms,
    at + holdfast.ms(life_ms), w.label);
  RETURN first;
END $$;
