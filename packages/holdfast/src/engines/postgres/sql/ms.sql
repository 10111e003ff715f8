-- A number of milliseconds, and how many there are from one instant to another.
CREATE OR REPLACE FUNCTION holdfast.ms(amount bigint) RETURNS interval
LANGUAGE sql IMMUTABLE AS $$ SELECT amount * interval '1 millisecond' $$;

CREATE OR REPLACE FUNCTION holdfast.ms_between(earlier timestamptz, later timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT ceil(extract(epoch FROM later - earlier) * 1000)::bigint $$;

-- How many are left until then: never more than there are, because a holder counts on them.
CREATE OR REPLACE FUNCTION holdfast.ms_left(ends_at timestamptz) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
  SELECT greatest(0, floor(extract(epoch FROM ends_at - clock_timestamp()) * 1000))::bigint
$$;
