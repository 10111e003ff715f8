-- Removes grants whose lock-delay is over. A locked grant stays: it is being renewed, or a transaction
-- that checked its fence is still open, and nobody may get in before that commits.
CREATE OR REPLACE FUNCTION holdfast.clear_over(res text, at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM holdfast.grants WHERE grant_id IN (
    SELECT grant_id FROM holdfast.grants
     WHERE resource = res AND expires_at + holdfast.ms(delay_ms) <= at
       FOR UPDATE SKIP LOCKED);
END $$;
