-- Whether a claim of this kind may join those who hold.
CREATE OR REPLACE FUNCTION holdfast.fits(held bigint, writer boolean, is_shared boolean, limit_to bigint)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT held = 0 OR (is_shared AND NOT writer AND (limit_to = 0 OR held < limit_to))
$$;

-- A waiter that was not heard of for three heartbeats is passed over until it is heard of again. Not
-- immutable, because arithmetic with intervals is not: what claims too much is not inlined.
CREATE OR REPLACE FUNCTION holdfast.is_fresh(heard_at timestamptz, at timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT heard_at > at - interval '3 seconds' $$;
