-- For people: mode, token in use, label, what is left, whether revoked.
CREATE OR REPLACE FUNCTION holdfast.holders(res text, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_array(CASE WHEN shared THEN 's' ELSE 'x' END,
      (token + token_index)::text, label, holdfast.ms_between(at, expires_at), revoked)
      ORDER BY token), '[]')
    FROM holdfast.grants WHERE resource = res AND expires_at > at) || holdfast.foreign_holder(res, at);
END $$;

-- When a waiter must look by itself. An expiry tells nobody, so the head looks then; where nobody is
-- told of anything, it looks at its pace, and each of the others the more rarely the further it is.
CREATE OR REPLACE FUNCTION holdfast.next_ms(res text, before bigint, pace_ms integer, at timestamptz)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF before > 0 THEN RETURN least(1000, pace_ms * (before + 1)); END IF;
  -- Other programs tell nobody that they have finished.
  IF holdfast.foreign_holder(res, at) <> '[]' THEN RETURN 75; END IF;
  RETURN (SELECT greatest(5, least(pace_ms,
      min(holdfast.ms_between(at, expires_at + holdfast.ms(delay_ms)))))
    FROM holdfast.grants WHERE resource = res);
END $$;

-- Gives queued position nextMs holders
CREATE OR REPLACE FUNCTION holdfast.queued(res text, id uuid, pace_ms integer, at timestamptz)
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  all_before bigint;
  fresh_before bigint;
BEGIN
  SELECT count(*), count(*) FILTER (WHERE holdfast.is_fresh(heard_at, at))
    INTO all_before, fresh_before
    FROM holdfast.waiters
   WHERE resource = res AND place < (SELECT place FROM holdfast.waiters WHERE grant_id = id);
  RETURN jsonb_build_array('queued', all_before,
    holdfast.next_ms(res, fresh_before, pace_ms, at), holdfast.holders(res, at));
END $$;

-- Gives holders, waiters as mode label, ms for which a lock-delay keeps it closed
CREATE OR REPLACE FUNCTION holdfast.inspect(res text, at timestamptz DEFAULT clock_timestamp())
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT jsonb_build_array(
      holdfast.holders(res, at),
      (SELECT coalesce(jsonb_agg(
           jsonb_build_array(CASE WHEN shared THEN 's' ELSE 'x' END, label) ORDER BY place), '[]')
         FROM holdfast.waiters WHERE resource = res AND heard_at > at - interval '10 seconds'),
      (SELECT coalesce(greatest(0, max(holdfast.ms_between(at, expires_at + holdfast.ms(delay_ms)))), 0)
         FROM holdfast.grants WHERE resource = res AND expires_at <= at)));
END $$;

-- Gives page, and an array of names, each with what inspect gives
CREATE OR REPLACE FUNCTION holdfast.list(after text, most integer) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT jsonb_build_array('page',
        coalesce(jsonb_agg(jsonb_build_array(name, holdfast.inspect(name)) ORDER BY name), '[]'))
      FROM (SELECT name FROM holdfast.resources WHERE name > after ORDER BY name LIMIT most) page);
END $$;
