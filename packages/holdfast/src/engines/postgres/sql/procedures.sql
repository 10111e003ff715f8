-- The procedures that an engine calls. A procedure that begins with COMMIT is refused (2D000) inside a
-- transaction that somebody else has opened, where an unseen rollback would undo our grant. The server
-- makes this test itself; timestamps and transaction numbers only come near it. The transaction that
-- follows reads what is committed at that moment, whatever isolation level the session prefers. A
-- procedure with its own rights or settings may not commit, so the functions have them. Everybody may
-- call these procedures; a user without rights on the function gets no further.
CREATE OR REPLACE PROCEDURE holdfast.call_run(
  ops jsonb, wait_ms integer, keep_ms bigint, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.run(ops, wait_ms, keep_ms);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_run_one(
  op jsonb, wait_ms integer, keep_ms bigint, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.run_one(op, wait_ms, keep_ms);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_hand_over(
  res text, id uuid, wait_ms integer, keep_ms bigint, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.hand_over(res, id, wait_ms, keep_ms);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_heartbeat(names text[], ids uuid[], beats bigint[],
  listens text, pace_ms integer, wait_ms integer, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.heartbeat(names, ids, beats, listens, pace_ms, wait_ms);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_renew(names text[], ids uuid[], ttls bigint[],
  indexes integer[], leaves boolean[], ord bigint, wait_ms integer, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.renew(names, ids, ttls, indexes, leaves, ord, wait_ms);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_check_token(
  res text, is_shared boolean, asked bigint, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := to_jsonb(holdfast.check_token(res, is_shared, asked));
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_look(res text, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.look(res);
END $$;

CREATE OR REPLACE PROCEDURE holdfast.call_page(
  after text, prefix text, most integer, INOUT answer jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  answer := holdfast.page(after, prefix, most);
END $$;
