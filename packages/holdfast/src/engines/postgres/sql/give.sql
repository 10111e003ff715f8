-- Makes a grant that lives life_ms from now on. Gives its first token.
CREATE OR REPLACE FUNCTION holdfast.give(
  id uuid, res text, is_shared boolean, limit_to bigint, tokens integer, ttl_ms bigint,
  delay_ms bigint, label text, life_ms bigint, at timestamptz) RETURNS bigint
LANGUAGE sql AS $$
  INSERT INTO holdfast.grants
    (grant_id, resource, shared, limit_to, token, tokens, ttl_ms, delay_ms, expires_at, label)
  VALUES (id, res, is_shared, limit_to, nextval('holdfast.tokens'), tokens, ttl_ms, delay_ms,
    at + holdfast.ms(life_ms), label)
  RETURNING token
$$;
