-- Lets in from the head of the line whoever fits. callers are told by the answer to their call; the
-- others by a notice, and hold for one claim window until they are heard of. Gives how many hold then.
CREATE OR REPLACE FUNCTION holdfast.promote(res text, callers uuid[], at timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  held bigint;
  writer boolean;
  over boolean;
BEGIN
  SELECT count(*), coalesce(bool_or(NOT g.shared), false),
      coalesce(bool_or(g.expires_at + holdfast.ms(g.delay_ms) <= at), false)
    INTO held, writer, over
    FROM holdfast.grants g WHERE g.resource = res;
  IF over THEN
    PERFORM holdfast.clear_over(res, at);
    SELECT count(*), coalesce(bool_or(NOT g.shared), false) INTO held, writer
      FROM holdfast.grants g WHERE g.resource = res;
  END IF;
  IF writer THEN RETURN held; END IF;
  RETURN holdfast.let_in(res, held, callers, at);
END $$;

-- As promote, where so many hold and none of them is a writer.
CREATE OR REPLACE FUNCTION holdfast.let_in(
  res text, held bigint, callers uuid[], at timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  w holdfast.waiters;
  writer boolean := false;
  life_ms bigint;
  done boolean;
BEGIN
  FOR w IN SELECT * FROM holdfast.waiters WHERE resource = res ORDER BY place LOOP
    EXIT WHEN NOT holdfast.fits(held, writer, w.shared, w.limit_to);
    CONTINUE WHEN NOT holdfast.is_fresh(w.heard_at, at);
    life_ms := CASE WHEN w.grant_id = ANY (callers) THEN w.ttl_ms ELSE least(w.ttl_ms, 3000) END;
    EXIT WHEN NOT holdfast.foreign_take(
      res, w.grant_id, w.label, at + holdfast.ms(life_ms + w.delay_ms), at);
    IF w.grant_id = ANY (callers) THEN w.channel := ''; END IF;
    done := holdfast.succeed(w, life_ms, at);
    held := held + 1;
    writer := NOT w.shared;
    EXIT WHEN writer;
  END LOOP;
  RETURN held;
END $$;
