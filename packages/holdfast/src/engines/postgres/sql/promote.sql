-- Lets in from the head of the line whoever fits. callers are told by the answer to their call; the
-- others by a notice, and hold for one claim window until they are heard of. Gives how many hold then.
CREATE OR REPLACE FUNCTION holdfast.promote(res text, callers uuid[], at timestamptz,
  OUT held bigint, OUT writer boolean)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT h.held, h.writer INTO held, writer FROM holdfast.holding(res, at) h;
  IF writer THEN RETURN; END IF;
  SELECT l.held, l.writer INTO held, writer FROM holdfast.let_in(res, held, callers, at) l;
END $$;

-- As promote, where so many hold and none of them is a writer. Whoever has a grant already, which is over
-- and still there, is passed over.
CREATE OR REPLACE FUNCTION holdfast.let_in(
  res text, present bigint, callers uuid[], at timestamptz, OUT held bigint, OUT writer boolean)
LANGUAGE plpgsql AS $$
DECLARE
  w holdfast.waiters;
  life_ms bigint;
  ends timestamptz := 'infinity';
  done boolean;
BEGIN
  held := present;
  writer := false;
  FOR w IN SELECT * FROM holdfast.waiters WHERE resource = res ORDER BY place LOOP
    EXIT WHEN NOT holdfast.fits(held, writer, w.shared, w.limit_to);
    CONTINUE WHEN NOT holdfast.is_fresh(w.heard_at, at)
      OR EXISTS (SELECT FROM holdfast.grants g WHERE g.grant_id = w.grant_id);
    life_ms := CASE WHEN w.grant_id = ANY (callers) THEN w.ttl_ms ELSE least(w.ttl_ms, 3000) END;
    EXIT WHEN NOT holdfast.foreign_take(
      res, w.grant_id, w.label, at + holdfast.ms(life_ms + w.delay_ms), at);
    IF w.grant_id = ANY (callers) THEN w.channel := ''; END IF;
    done := holdfast.succeed(w, life_ms, at);
    held := held + 1;
    ends := least(ends, at + holdfast.ms(life_ms + w.delay_ms));
    writer := NOT w.shared;
    EXIT WHEN writer;
  END LOOP;
  IF present > 0 AND held > present THEN
    PERFORM holdfast.count_on(res, held - present, ends, at);
  END IF;
END $$;
