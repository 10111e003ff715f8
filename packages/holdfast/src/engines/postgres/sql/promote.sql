-- Grants to waiters from the head of the queue while they fit. Waiters in `callers` learn it from the
-- answer to their call. The others get a notification, and hold for one claim window until they send a
-- heartbeat. Returns how many hold afterwards.
CREATE OR REPLACE FUNCTION holdfast.promote(res text, callers uuid[], at timestamptz,
  OUT held bigint, OUT writer boolean)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT h.held, h.writer INTO held, writer FROM holdfast.holding(res, at) h;
  IF writer THEN RETURN; END IF;
  SELECT l.held, l.writer INTO held, writer FROM holdfast.let_in(res, held, callers, at) l;
END $$;

-- Like promote, for a resource with this many holders and no writer among them. A waiter that already
-- has a grant, which is over but still exists, is skipped.
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
