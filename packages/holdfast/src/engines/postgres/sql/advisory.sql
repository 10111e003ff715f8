-- Grants that are session locks of PostgreSQL. The lock decides; the rows say whose lock it is, and are
-- valid while the session that wrote them lives. A session proves that it lives by a lock on its own
-- number.
CREATE TABLE IF NOT EXISTS holdfast.advisory (
  grant_id uuid PRIMARY KEY,
  session bigint NOT NULL,
  pid integer NOT NULL,
  key bigint NOT NULL,
  resource text COLLATE "C" NOT NULL,
  shared boolean NOT NULL,
  token bigint NOT NULL,
  tokens integer NOT NULL,
  ttl_ms bigint NOT NULL,
  heard_at timestamptz NOT NULL,
  revoked boolean NOT NULL DEFAULT false,
  label text NOT NULL
);
-- As in the table grants.
ALTER TABLE holdfast.advisory ADD COLUMN IF NOT EXISTS renewal_order bigint NOT NULL DEFAULT 0;
ALTER TABLE holdfast.advisory ADD COLUMN IF NOT EXISTS token_index integer NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS advisory_session ON holdfast.advisory (session, ttl_ms);
DROP INDEX IF EXISTS holdfast.advisory_key;
CREATE INDEX IF NOT EXISTS advisory_holds ON holdfast.advisory (key, session);
CREATE INDEX IF NOT EXISTS advisory_resource ON holdfast.advisory (resource);

-- A name that is a number is used as the key; any other name is hashed the way other programs hash
-- names in SQL.
CREATE OR REPLACE FUNCTION holdfast.advisory_key(name text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN name ~ '^-?[0-9]{1,18}$' THEN name::bigint ELSE hashtextextended(name, 0) END
$$;

-- The sessions that hold a key at this moment.
CREATE OR REPLACE FUNCTION holdfast.advisory_pids(wanted bigint) RETURNS TABLE (pid integer, shared boolean)
LANGUAGE sql AS $$
  SELECT l.pid, l.mode = 'ShareLock' FROM pg_locks l
   WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND l.classid::bigint = ((wanted >> 32) & 4294967295) AND l.objid::bigint = (wanted & 4294967295)
$$;

CREATE OR REPLACE FUNCTION holdfast.advisory_lives(session bigint) RETURNS boolean
LANGUAGE sql AS $$ SELECT EXISTS (SELECT FROM holdfast.advisory_pids(session)) $$;

-- All keys that are held, in one look at all locks. The number of a session is among them while it
-- lives.
CREATE OR REPLACE FUNCTION holdfast.advisory_keys() RETURNS SETOF bigint
LANGUAGE sql AS $$
  SELECT (l.classid::bigint << 32) | l.objid::bigint FROM pg_locks l
   WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$;

-- The sessions that have rows of a key, each once, however many rows each has.
CREATE OR REPLACE FUNCTION holdfast.advisory_sessions(wanted bigint) RETURNS SETOF bigint
LANGUAGE sql AS $$
  WITH RECURSIVE s(id) AS (
    SELECT (SELECT min(a.session) FROM holdfast.advisory a WHERE a.key = wanted)
    UNION ALL
    SELECT (SELECT min(a.session) FROM holdfast.advisory a WHERE a.key = wanted AND a.session > s.id)
      FROM s WHERE s.id IS NOT NULL)
  SELECT s.id FROM s WHERE s.id IS NOT NULL
$$;

-- A pooler that lends another session for every transaction would take locks that nobody releases.
CREATE OR REPLACE FUNCTION holdfast.advisory_session(my_pid integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF pg_backend_pid() <> my_pid THEN
    RAISE EXCEPTION USING ERRCODE = 'HF001', MESSAGE = 'this is not the session that it was';
  END IF;
  -- A token that was answered must not be given again after a crash, whatever the session's own setting
  -- is.
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

-- Sets how long this session may be silent before the server ends it, and its locks with it. Computed
-- from the rows: the client may have computed its value before another of its own calls was carried
-- out.
CREATE OR REPLACE FUNCTION holdfast.advisory_patience(my_session bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('idle_session_timeout', coalesce(
    (SELECT max(ttl_ms) FROM holdfast.advisory WHERE session = my_session), 0)::text, false);
END $$;

-- op    verb acquire, name, key: the name with its prefix, id, shared, ttl, tokens, label
-- Gives granted token tokens ttl | busy retryMs holders | gone why
CREATE OR REPLACE FUNCTION holdfast.advisory_acquire(
  op jsonb, my_session bigint, my_pid integer) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  res text := op->>'name';
  id uuid := (op->>'id')::uuid;
  wanted bigint := holdfast.advisory_key(op->>'key');
  is_shared boolean := (op->>'shared')::boolean;
  mine holdfast.advisory;
  has_shared boolean;
  let_in boolean;
  first bigint;
BEGIN
  IF EXISTS (SELECT FROM holdfast.tombstones t WHERE t.grant_id = id AND t.until > clock_timestamp()) THEN
    RETURN '["gone", "unknown"]';
  END IF;
  SELECT * INTO mine FROM holdfast.advisory WHERE grant_id = id AND session = my_session;
  IF FOUND THEN
    IF mine.revoked THEN RETURN '["gone", "revoked"]'; END IF;
    UPDATE holdfast.advisory SET heard_at = clock_timestamp() WHERE grant_id = id;
    RETURN jsonb_build_array('granted', mine.token::text, mine.tokens, mine.ttl_ms);
  END IF;
  -- PostgreSQL lets a session take a lock that it holds already, so the rows must refuse it. The rows
  -- of one session and key are one writer, or readers only.
  SELECT a.shared INTO has_shared FROM holdfast.advisory a
   WHERE a.key = wanted AND a.session = my_session LIMIT 1;
  IF FOUND THEN let_in := has_shared AND is_shared;
  ELSIF is_shared THEN let_in := pg_try_advisory_lock_shared(wanted);
  ELSE let_in := pg_try_advisory_lock(wanted);
  END IF;
  IF NOT let_in THEN
    RETURN jsonb_build_array('busy', 1000, holdfast.advisory_holders(res, wanted));
  END IF;
  IF EXISTS (SELECT FROM holdfast.advisory a WHERE a.key = wanted AND a.session < my_session)
     OR EXISTS (SELECT FROM holdfast.advisory a WHERE a.key = wanted AND a.session > my_session) THEN
    DELETE FROM holdfast.advisory a WHERE a.key = wanted AND a.session IN (
      SELECT s FROM holdfast.advisory_sessions(wanted) s
       WHERE s NOT IN (SELECT holdfast.advisory_keys()));
  END IF;
  DELETE FROM holdfast.advisory a WHERE a.grant_id = id AND NOT holdfast.advisory_lives(a.session);
  first := nextval('holdfast.tokens');
  INSERT INTO holdfast.advisory (grant_id, session, pid, key, resource, shared, token, tokens, ttl_ms,
      heard_at, revoked, label)
    VALUES (id, my_session, my_pid, wanted, res, is_shared, first,
    (op->>'tokens')::integer, (op->>'ttl')::bigint, clock_timestamp(), false, op->>'label');
  RETURN jsonb_build_array('granted', first::text, (op->>'tokens')::integer, (op->>'ttl')::bigint);
END $$;

-- Carries out operations one after the other, on the session that holds the locks.
-- ops     array of what acquire and release take, each with its verb
-- keep_ms how long unused rows are kept
-- Gives an answer for each operation
CREATE OR REPLACE FUNCTION holdfast.advisory_run(
  ops jsonb, keep_ms bigint, my_session bigint, my_pid integer) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  op jsonb;
  answers jsonb := '[]';
BEGIN
  PERFORM holdfast.advisory_session(my_pid);
  FOR op IN SELECT o FROM jsonb_array_elements(ops) o LOOP
    answers := answers || jsonb_build_array(CASE op->>'verb'
      WHEN 'release' THEN holdfast.advisory_release(op, my_session)
      ELSE holdfast.advisory_acquire(op, my_session, my_pid) END);
  END LOOP;
  PERFORM holdfast.advisory_patience(my_session);
  IF random() < 0.01 THEN PERFORM holdfast.advisory_sweep(keep_ms); END IF;
  RETURN answers;
END $$;

-- Removes a few rows that dead sessions left behind. Waits for nobody. Reads the whole table, which has
-- no more rows than sessions can hold locks.
CREATE OR REPLACE FUNCTION holdfast.advisory_sweep(keep_ms bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  idle_since timestamptz := holdfast.idle_since(clock_timestamp(), keep_ms);
BEGIN
  PERFORM holdfast.sweep(keep_ms);
  DELETE FROM holdfast.advisory WHERE grant_id IN (
    SELECT a.grant_id FROM holdfast.advisory a
     WHERE a.heard_at < idle_since AND NOT holdfast.advisory_lives(a.session)
     LIMIT 50 FOR UPDATE SKIP LOCKED);
END $$;

-- Renews grants. Each is an element of four arrays: name, id, ttl, index of the token in use. ord: the
-- number of the call. Works like renew for rows, except that a session lock cannot be left. The
-- condition says session + 0 so that rows are found by their ids: a plan made while the session had few
-- rows would read all of them later.
-- Gives for each renewed ms | gone why
CREATE OR REPLACE FUNCTION holdfast.advisory_renew(names text[], ids uuid[], ttls bigint[],
  indexes integer[], ord bigint, my_session bigint, my_pid integer) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
  PERFORM holdfast.advisory_session(my_pid);
  UPDATE holdfast.advisory a SET ttl_ms = b.ttl, heard_at = clock_timestamp(), renewal_order = ord,
      token_index = greatest(a.token_index, b.in_use), revoked = false
    FROM unnest(names, ids, ttls, indexes) AS b(name, id, ttl, in_use)
   WHERE a.grant_id = b.id AND a.resource = b.name AND a.session + 0 = my_session
     AND (NOT a.revoked OR b.in_use > a.token_index) AND a.renewal_order <= ord;
  PERFORM holdfast.advisory_patience(my_session);
  RETURN (SELECT coalesce(jsonb_agg(CASE
      WHEN a.grant_id IS NULL THEN '["gone", "expired"]'::jsonb
      WHEN a.revoked AND b.in_use <= a.token_index THEN '["gone", "revoked"]'
      WHEN a.renewal_order = ord THEN jsonb_build_array('renewed', b.ttl)
      ELSE jsonb_build_array('renewed', holdfast.ms_left(a.heard_at + holdfast.ms(a.ttl_ms)))
      END ORDER BY b.n), '[]')
    FROM unnest(names, ids, ttls, indexes) WITH ORDINALITY AS b(name, id, ttl, in_use, n)
    LEFT JOIN holdfast.advisory a
      ON a.grant_id = b.id AND a.resource = b.name AND a.session + 0 = my_session);
END $$;

-- op    verb release, name, id, tombstone, changes: the channel on which waiters listen
-- Gives released none | gone why
CREATE OR REPLACE FUNCTION holdfast.advisory_release(op jsonb, my_session bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  gone holdfast.advisory;
BEGIN
  IF (op->>'tombstone')::bigint > 0 THEN
    INSERT INTO holdfast.tombstones AS t
      VALUES ((op->>'id')::uuid, clock_timestamp() + holdfast.ms((op->>'tombstone')::bigint))
      ON CONFLICT (grant_id) DO UPDATE SET until = greatest(t.until, excluded.until);
  END IF;
  DELETE FROM holdfast.advisory
   WHERE grant_id = (op->>'id')::uuid AND resource = op->>'name' AND session = my_session
   RETURNING * INTO gone;
  IF NOT FOUND THEN RETURN '["gone", "expired"]'; END IF;
  -- All readers of one session share one lock.
  IF NOT gone.shared THEN PERFORM pg_advisory_unlock(gone.key);
  ELSIF NOT EXISTS (SELECT FROM holdfast.advisory a
                     WHERE a.key = gone.key AND a.session = my_session) THEN
    PERFORM pg_advisory_unlock_shared(gone.key);
  END IF;
  PERFORM pg_notify(op->>'changes', op->>'name');
  RETURN '["released", []]';
END $$;

-- Makes the rows and the locks of this session agree again after a failed statement. Rows are rolled
-- back and locks are not: an acquire leaves a lock without a row, a release leaves a row without its
-- lock. A lock counts how often it was taken, so it is released until it is gone.
CREATE OR REPLACE FUNCTION holdfast.advisory_tidy(my_session bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  l record;
BEGIN
  FOR l IN
    SELECT (p.classid::bigint << 32) | p.objid::bigint AS key, p.mode = 'ShareLock' AS shared
      FROM pg_locks p
     WHERE p.locktype = 'advisory' AND p.granted AND p.objsubid = 1 AND p.pid = pg_backend_pid()
  LOOP
    CONTINUE WHEN l.key = my_session OR EXISTS (SELECT FROM holdfast.advisory a
      WHERE a.session = my_session AND a.key = l.key AND a.shared = l.shared);
    WHILE holdfast.advisory_has(l.key, l.shared) LOOP
      IF l.shared THEN PERFORM pg_advisory_unlock_shared(l.key);
      ELSE PERFORM pg_advisory_unlock(l.key);
      END IF;
    END LOOP;
  END LOOP;
  DELETE FROM holdfast.advisory a
   WHERE a.session = my_session AND NOT holdfast.advisory_has(a.key, a.shared);
END $$;

-- Whether this session holds this lock.
CREATE OR REPLACE FUNCTION holdfast.advisory_has(wanted bigint, is_shared boolean) RETURNS boolean
LANGUAGE sql AS $$
  SELECT EXISTS (SELECT FROM holdfast.advisory_pids(wanted) p
    WHERE p.pid = pg_backend_pid() AND p.shared = is_shared)
$$;

-- With force, the holder's session is ended, and with it every other lock of that session.
-- Gives revoked | gone
CREATE OR REPLACE FUNCTION holdfast.advisory_revoke(
  res text, asked bigint, by_force boolean, changes text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  a holdfast.advisory;
BEGIN
  UPDATE holdfast.advisory r SET revoked = true
   WHERE r.resource = res AND asked = r.token + r.token_index
     AND holdfast.advisory_lives(r.session)
   RETURNING * INTO a;
  IF NOT FOUND THEN RETURN '["gone"]'; END IF;
  IF by_force THEN PERFORM pg_terminate_backend(a.pid, 2000); END IF;
  PERFORM pg_notify(changes, res);
  RETURN '["revoked"]';
END $$;
