-- The procedures that an engine with session locks calls. Each begins with COMMIT for the reason in
-- procedures.sql. Besides, a serialization failure would roll back rows but not locks, and READ
-- COMMITTED has no such failures.
CREATE OR REPLACE PROCEDURE holdfast.call_advisory_run(
  ops jsonb, keep_ms bigint, my_session bigint, my_pid integer, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.advisory_run(ops, keep_ms, my_session, my_pid);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_advisory_renew(names text[], ids uuid[], ttls bigint[],
  indexes integer[], ord bigint, my_session bigint, my_pid integer, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.advisory_renew(names, ids, ttls, indexes, ord, my_session, my_pid);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_advisory_tidy(my_session bigint, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  PERFORM holdfast.advisory_tidy(my_session);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_advisory_check(
  res text, is_shared boolean, asked bigint, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := to_jsonb(holdfast.advisory_check(res, is_shared, asked));
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_advisory_revoke(
  res text, asked bigint, by_force boolean, changes text, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.advisory_revoke(res, asked, by_force, changes);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_advisory_look(res text, named text, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.advisory_look(res, named);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_advisory_page(
  after text, prefix text, most integer, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.advisory_page(after, prefix, most);
END $$;
