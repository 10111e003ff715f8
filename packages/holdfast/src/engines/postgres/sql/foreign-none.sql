-- Another program's table that must agree before a grant is made. With hold "rows" there is none;
-- foreign-shedlock.sql has the other version.
CREATE OR REPLACE FUNCTION holdfast.foreign_take(
  res text, id uuid, label text, until timestamptz, at timestamptz)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT true $$;

CREATE OR REPLACE FUNCTION holdfast.foreign_mine(res text, id uuid)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT true $$;

CREATE OR REPLACE FUNCTION holdfast.foreign_kept(ids uuid[])
RETURNS uuid[] LANGUAGE sql IMMUTABLE AS $$ SELECT ids $$;

CREATE OR REPLACE FUNCTION holdfast.foreign_free(res text, id uuid, at timestamptz)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT true $$;

CREATE OR REPLACE FUNCTION holdfast.foreign_holder(res text, at timestamptz)
RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$ SELECT '[]'::jsonb $$;

CREATE OR REPLACE FUNCTION holdfast.holds() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'rows' $$;
