-- Routines of earlier versions that this one does not have. A routine with other parameters is another
-- routine. This file must run before promote.sql: promote() and let_in() keep their parameters and
-- change their result, which CREATE OR REPLACE refuses.
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
DROP FUNCTION IF EXISTS holdfast.promote(text, uuid[], timestamptz);
DROP FUNCTION IF EXISTS holdfast.let_in(text, bigint, uuid[], timestamptz);
DROP FUNCTION IF EXISTS holdfast.holders(text, timestamptz);
DROP FUNCTION IF EXISTS holdfast.list(text, integer);
DROP FUNCTION IF EXISTS holdfast.page(text, integer);
DROP FUNCTION IF EXISTS holdfast.advisory_page(text, integer);
