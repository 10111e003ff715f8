-- Other routines that are called from outside. They run with the rights of the tables' owner, so that
-- callers need no rights on the tables.

CREATE OR REPLACE FUNCTION holdfast.check_token(res text, is_shared boolean, asked bigint)
RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
  SELECT EXISTS (SELECT FROM holdfast.grant_of(res, asked) g
    WHERE g.shared = is_shared AND NOT g.revoked AND g.expires_at > clock_timestamp())
$$;

-- ShedLock's own clients do not see a claim in a transaction, and do not wait for a transaction that
-- checked its fence.
CREATE OR REPLACE FUNCTION holdfast.refuse_shedlock() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF holdfast.holds() = 'shedlock' THEN
    RAISE EXCEPTION USING ERRCODE = 'HF003', MESSAGE = 'ShedLock knows of no transactions';
  END IF;
END $$;

-- Like check_token, but stays true until the transaction ends: the grant may expire meanwhile, but
-- nobody can succeed it. Renewals continue.
CREATE OR REPLACE FUNCTION holdfast.fence(res text, is_shared boolean, asked bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
  PERFORM holdfast.refuse_shedlock();
  -- A snapshot shows outdated grants: a grant renewed since looks expired, a grant revoked since looks
  -- valid.
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION USING ERRCODE = 'HF002', MESSAGE = 'a fence needs READ COMMITTED';
  END IF;
  PERFORM FROM holdfast.grants
    WHERE grant_id = (SELECT g.grant_id FROM holdfast.grant_of(res, asked) g)
      AND shared = is_shared AND NOT revoked AND expires_at > clock_timestamp()
      FOR KEY SHARE;
  RETURN FOUND;
END $$;

-- Takes an exclusive claim until the transaction ends. Returns a token, or null if somebody holds the
-- resource or waits for it. Then nothing stays locked, because the block is rolled back.
CREATE OR REPLACE FUNCTION holdfast.claim_here(res text, wait_ms integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  before text := current_setting('lock_timeout');
  at timestamptz;
BEGIN
  PERFORM holdfast.refuse_shedlock();
  PERFORM holdfast.lock_resources(ARRAY[res], wait_ms);
  PERFORM set_config('lock_timeout', before, true);
  at := clock_timestamp();
  PERFORM holdfast.promote(res, '{}', at);
  IF EXISTS (SELECT FROM holdfast.grants g WHERE g.resource = res)
     OR EXISTS (SELECT FROM holdfast.waiters w
                 WHERE w.resource = res AND holdfast.is_fresh(w.heard_at, at)) THEN
    RAISE lock_not_available;
  END IF;
  PERFORM holdfast.drop_idle(ARRAY[res]);
  RETURN nextval('holdfast.tokens');
EXCEPTION
  WHEN lock_not_available THEN RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION holdfast.look(res text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
  SELECT holdfast.inspect(res)
$$;

CREATE OR REPLACE FUNCTION holdfast.page(after text, prefix text, most integer) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
  SELECT holdfast.list(after, prefix, most)
$$;

CREATE OR REPLACE FUNCTION holdfast.version() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 7 $$;
