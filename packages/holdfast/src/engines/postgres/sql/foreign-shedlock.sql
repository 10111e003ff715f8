-- A grant is also the row of this name in ShedLock's own table. It is taken, extended and released by
-- ShedLock's own statements, in UTC. locked_by ends with a mark of this one grant: two runs on one host
-- have the same name, and neither may release the other's lock. ShedLock's names have the database's
-- collation and ours do not; compared in our collation, they would not be found by its index.
CREATE TABLE IF NOT EXISTS shedlock_table (
  name varchar(64) NOT NULL,
  lock_until timestamp NOT NULL,
  locked_at timestamp NOT NULL,
  locked_by varchar(255) NOT NULL,
  PRIMARY KEY (name)
);

CREATE OR REPLACE FUNCTION holdfast.foreign_mark(id uuid) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT ' ' || left(encode(sha256(uuid_send(id)), 'hex'), 16) $$;

CREATE OR REPLACE FUNCTION holdfast.foreign_take(
  res text, id uuid, label text, until timestamptz, at timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO shedlock_table AS s (name, lock_until, locked_at, locked_by)
    VALUES (res, timezone('utc', until), timezone('utc', at),
      left(label, 200) || holdfast.foreign_mark(id))
    ON CONFLICT (name) DO UPDATE
      SET lock_until = excluded.lock_until, locked_at = excluded.locked_at,
          locked_by = excluded.locked_by
    WHERE s.lock_until <= timezone('utc', clock_timestamp());
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION holdfast.foreign_mine(res text, id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (SELECT FROM shedlock_table
    WHERE name = res COLLATE "default" AND right(locked_by, 17) = holdfast.foreign_mark(id)
      AND lock_until > timezone('utc', clock_timestamp()));
END $$;

-- Returns the grants whose row was still theirs. From then on the row is locked, so nobody can take it.
CREATE OR REPLACE FUNCTION holdfast.foreign_kept(ids uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  kept uuid[];
BEGIN
  WITH k AS (
    UPDATE shedlock_table s
       SET lock_until = timezone('utc', g.expires_at + holdfast.ms(g.delay_ms))
      FROM holdfast.grants g
     WHERE g.grant_id = ANY (ids) AND s.name = g.resource COLLATE "default"
       AND right(s.locked_by, 17) = holdfast.foreign_mark(g.grant_id)
       AND s.lock_until > timezone('utc', clock_timestamp())
    RETURNING g.grant_id)
  SELECT coalesce(array_agg(k.grant_id), '{}') INTO kept FROM k;
  RETURN kept;
END $$;

CREATE OR REPLACE FUNCTION holdfast.foreign_free(res text, id uuid, at timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE shedlock_table SET lock_until = timezone('utc', at)
   WHERE name = res COLLATE "default" AND right(locked_by, 17) = holdfast.foreign_mark(id)
     AND lock_until > timezone('utc', at);
  RETURN FOUND;
END $$;

-- The owner of the row, if it is not one of our holders.
CREATE OR REPLACE FUNCTION holdfast.foreign_holder(res text, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_array('x', '0', s.locked_by,
      holdfast.ms_between(at, s.lock_until AT TIME ZONE 'utc'), false)), '[]')
    FROM shedlock_table s
   WHERE s.name = res COLLATE "default" AND s.lock_until > timezone('utc', at)
     AND NOT EXISTS (SELECT FROM holdfast.grants g WHERE g.resource = res
       AND right(s.locked_by, 17) = holdfast.foreign_mark(g.grant_id)));
END $$;

CREATE OR REPLACE FUNCTION holdfast.holds() RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT 'shedlock' $$;
