-- Milliseconds as an interval, and the milliseconds between two instants.
CREATE OR REPLACE FUNCTION holdfast.ms(amount bigint) RETURNS interval
LANGUAGE sql IMMUTABLE AS $$ SELECT amount * interval '1 millisecond' $$;

CREATE OR REPLACE FUNCTION holdfast.ms_between(earlier timestamptz, later timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT ceil(extract(epoch FROM later - earlier) * 1000)::bigint $$;

-- The milliseconds until then, rounded down, because a holder relies on them.
CREATE OR REPLACE FUNCTION holdfast.ms_left(ends_at timestamptz) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
  SELECT greatest(0, floor(extract(epoch FROM ends_at - clock_timestamp()) * 1000))::bigint
$$;
