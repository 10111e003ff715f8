-- Carries out operations one after the other, in one transaction.
-- ops     array of what claim, release, withdraw and revoke take, each with its verb
-- wait_ms how long to wait for other transactions that have locked the same resources
-- keep_ms how long unused rows are kept
-- Gives an answer for each operation
CREATE OR REPLACE FUNCTION holdfast.run(ops jsonb, wait_ms integer, keep_ms bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  op jsonb;
  at timestamptz;
  answers jsonb := '[]';
BEGIN
  PERFORM holdfast.lock_resources(
    ARRAY(SELECT o->>'name' FROM jsonb_array_elements(ops) o), wait_ms);
  -- Read after the locks are taken: their last owner may have acted after we began.
  at := clock_timestamp();
  FOR op IN SELECT o FROM jsonb_array_elements(ops) o LOOP
    answers := answers || jsonb_build_array(holdfast.carry_out(op, at, keep_ms));
  END LOOP;
  RETURN answers;
END $$;

-- Like run, for one operation. Gives its answer
CREATE OR REPLACE FUNCTION holdfast.run_one(op jsonb, wait_ms integer, keep_ms bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  locked boolean := holdfast.lock_resource(op->>'name', op->>'verb' = 'release', wait_ms);
BEGIN
  RETURN holdfast.carry_out(op, clock_timestamp(), keep_ms);
END $$;

CREATE OR REPLACE FUNCTION holdfast.carry_out(op jsonb, at timestamptz, keep_ms bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  answer jsonb := CASE op->>'verb'
    WHEN 'release' THEN holdfast.release(op, at)
    WHEN 'withdraw' THEN holdfast.withdraw(op, at)
    WHEN 'revoke' THEN holdfast.revoke(op, at)
    ELSE holdfast.claim(op, at) END;
BEGIN
  IF random() < 0.05 THEN PERFORM holdfast.sweep(keep_ms); END IF;
  RETURN answer;
END $$;
