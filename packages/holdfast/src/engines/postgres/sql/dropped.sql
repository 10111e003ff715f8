-- What earlier versions had and this one has not: a routine with other parameters is another routine.
DROP FUNCTION IF EXISTS holdfast.run(jsonb, integer);
DROP FUNCTION IF EXISTS holdfast.run_one(jsonb, integer);
DROP FUNCTION IF EXISTS holdfast.carry_out(jsonb, timestamptz);
DROP FUNCTION IF EXISTS holdfast.hand_over(text, uuid, integer);
DROP FUNCTION IF EXISTS holdfast.sweep();
DROP FUNCTION IF EXISTS holdfast.advisory_run(jsonb, bigint, integer, bigint);
DROP FUNCTION IF EXISTS holdfast.advisory_sweep();
DROP FUNCTION IF EXISTS holdfast.renew(text[], uuid[], bigint[]);
DROP FUNCTION IF EXISTS holdfast.finish(text, uuid, timestamptz);
DROP FUNCTION IF EXISTS holdfast.advisory_session(integer, bigint);
DROP FUNCTION IF EXISTS holdfast.advisory_run(jsonb, bigint, integer, bigint, bigint);
DROP FUNCTION IF EXISTS holdfast.advisory_renew(text[], uuid[], bigint[], bigint, integer, bigint);
DROP FUNCTION IF EXISTS holdfast.foreign_keep(uuid[]);
