-- What else may be asked from outside. The owner of the tables acts; whoever may call need not be
-- allowed to touch them.

CREATE OR REPLACE FUNCTION holdfast.check_token(res text, is_shared boolean, asked bigint)
RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
  SELECT EXISTS (SELECT FROM holdfast.grant_of(res, asked) g
    WHERE g.shared = is_shared AND NOT g.revoked AND g.expires_at > clock_timestamp())
$$;

-- ShedLock's own clients neither see a claim of a transaction nor wait for one that checked its fence.
CREATE OR REPLACE FUNCTION holdfast.refuse_shedlock() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF holdfast.holds() = 'shedlock' THEN
    RAISE EXCEPTION USING ERRCODE = 'HF003', MESSAGE = 'ShedLock knows of no transactions';
  END IF;
END $$;

-- As check_token, and true until the transaction ends: the grant may expire meanwhile, and cannot be
-- succeeded. Renewals go on.
CREATE OR REPLACE FUNCTION holdfast.fence(res text, is_shared boolean, asked bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
  PERFORM holdfast.refuse_shedlock();
  -- A snapshot shows grants as they were: what was renewed since looks expired, what was revoked looks good.
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION USING ERRCODE = 'HF002', MESSAGE = 'a fence needs READ COMMITTED';
  END IF;
  PERFORM FROM holdfast.grants
    WHERE grant_id = (SELECT g.grant_id FROM holdfast.grant_of(res, asked) g)
      AND shared = is_shared AND NOT revoked AND expires_at > clock_timestamp()
      FOR KEY SHARE;
  RETURN FOUND;
END $$;

-- Takes an exclusive claim for as long as the transaction lasts. Gives a token, or null where somebody
-- holds the resource or waits for it; then nothing stays locked, because its block is rolled back.
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
