-- Whether a claim of this mode may join the holders.
CREATE OR REPLACE FUNCTION holdfast.fits(held bigint, writer boolean, is_shared boolean, limit_to bigint)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT held = 0 OR (is_shared AND NOT writer AND (limit_to = 0 OR held < limit_to))
$$;

-- A waiter that missed three heartbeats is skipped until it sends one again. STABLE and not IMMUTABLE,
-- because arithmetic with intervals is not: a function that claims too much is not inlined.
CREATE OR REPLACE FUNCTION holdfast.is_fresh(heard_at timestamptz, at timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT heard_at > at - interval '3 seconds' $$;
