-- Carries out operations one after the other, in one transaction.
-- ops     array of what claim, release, withdraw and revoke take, each with its verb
-- wait_ms how long to wait for others who are at work on the same resources
-- Gives an answer for each operation
CREATE OR REPLACE FUNCTION holdfast.run(ops jsonb, wait_ms integer) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  names text[] := ARRAY(SELECT o->>'name' FROM jsonb_array_elements(ops) o);
  op jsonb;
  at timestamptz;
  answers jsonb := '[]';
BEGIN
  PERFORM holdfast.lock_resources(names, wait_ms);
  -- Not before the locks are ours: whoever had them may have acted later than we began.
  at := clock_timestamp();
  FOR op IN SELECT o FROM jsonb_array_elements(ops) o LOOP
    answers := answers || jsonb_build_array(CASE op->>'verb'
      WHEN 'release' THEN holdfast.release(op, at)
      WHEN 'withdraw' THEN holdfast.withdraw(op, at)
      WHEN 'revoke' THEN holdfast.revoke(op, at)
      ELSE holdfast.claim(op, at) END);
  END LOOP;
  IF random() < 0.01 THEN PERFORM holdfast.sweep(); END IF;
  RETURN answers;
END $$;
