-- A number of milliseconds, and how many there are from one instant to another.
CREATE OR REPLACE FUNCTION holdfast.ms(amount bigint) RETURNS interval
LANGUAGE sql IMMUTABLE AS $$ SELECT amount * interval '1 millisecond' $$;

CREATE OR REPLACE FUNCTION holdfast.ms_between(earlier timestamptz, later timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT ceil(extract(epoch FROM later - earlier) * 1000)::bigint $$;
