-- Takes away grants whose lock-delay is over. One that somebody has locked stays: it is being renewed
-- at this moment, or a transaction that checked its fence is still under way, and nobody comes in
-- before that has committed.
CREATE OR REPLACE FUNCTION holdfast.clear_over(res text, at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM holdfast.grants WHERE grant_id IN (
    SELECT grant_id FROM holdfast.grants
     WHERE resource = res AND expires_at + holdfast.ms(delay_ms) <= at
       FOR UPDATE SKIP LOCKED);
END $$;
