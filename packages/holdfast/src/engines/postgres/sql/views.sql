-- For people: mode, token, label, what is left, whether revoked.
CREATE OR REPLACE FUNCTION holdfast.holders(res text, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_array(CASE WHEN shared THEN 's' ELSE 'x' END, token::text,
        label, holdfast.ms_between(at, expires_at), revoked) ORDER BY token), '[]')
      FROM holdfast.grants WHERE resource = res AND expires_at > at);
END $$;

-- When the head of the line must look by itself: an expiry tells nobody. The others have time.
CREATE OR REPLACE FUNCTION holdfast.next_ms(res text, pace_ms integer, at timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT greatest(5, least(pace_ms,
        min(holdfast.ms_between(at, expires_at + holdfast.ms(delay_ms)))))
      FROM holdfast.grants WHERE resource = res);
END $$;

-- Gives queued position nextMs holders
CREATE OR REPLACE FUNCTION holdfast.queued(res text, id uuid, pace_ms integer, at timestamptz)
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT jsonb_build_array('queued', count(*),
        CASE WHEN count(*) FILTER (WHERE holdfast.is_fresh(before.heard_at, at)) = 0
          THEN holdfast.next_ms(res, pace_ms, at) ELSE 1000 END,
        holdfast.holders(res, at))
      FROM holdfast.waiters before
     WHERE before.resource = res
       AND before.place < (SELECT place FROM holdfast.waiters WHERE grant_id = id));
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

-- One page of names with what inspect gives for each.
CREATE OR REPLACE FUNCTION holdfast.list(after text, most integer) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_array(name, holdfast.inspect(name)) ORDER BY name), '[]')
      FROM (SELECT name FROM holdfast.resources WHERE name > after ORDER BY name LIMIT most) page);
END $$;
