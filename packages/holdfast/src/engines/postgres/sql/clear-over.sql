-- Takes away what time has ended: grants whose lock-delay is over, and waiters that are silent for
-- ten seconds. A grant that somebody has locked stays: it is being renewed at this moment, or a
-- transaction that checked its fence is still under way, and nobody comes in before that commits.
CREATE OR REPLACE FUNCTION holdfast.clear_over(res text, at timestamptz) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM holdfast.grants WHERE grant_id IN (
    SELECT grant_id FROM holdfast.grants
     WHERE resource = res AND expires_at + holdfast.ms(delay_ms) <= at
       FOR UPDATE SKIP LOCKED);
  DELETE FROM holdfast.waiters WHERE resource = res AND heard_at < at - interval '10 seconds';
$$;
