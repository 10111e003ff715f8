-- How many hold a resource, and whether one of them is a writer, after those whose time is over are gone.
-- A few are counted each time. More than 16, who are all readers, are counted once a second; in between the
-- row of the resource has their number. So a claim costs the same beside 50 and beside 2,000 of them. A
-- renewal for a shorter time is noticed a second late at most, then.
CREATE OR REPLACE FUNCTION holdfast.holding(
  res text, at timestamptz, OUT held bigint, OUT writer boolean)
LANGUAGE plpgsql AS $$
DECLARE
  ends timestamptz;
BEGIN
  SELECT r.held, false INTO held, writer FROM holdfast.resources r
   WHERE r.name = res AND r.counted_until > at;
  IF FOUND THEN RETURN; END IF;
  FOR attempt IN 1 .. 2 LOOP
    SELECT count(*), coalesce(bool_or(NOT g.shared), false), min(g.expires_at + holdfast.ms(g.delay_ms))
      INTO held, writer, ends
      FROM holdfast.grants g WHERE g.resource = res;
    EXIT WHEN attempt = 2 OR ends IS NULL OR ends > at;
    PERFORM holdfast.clear_over(res, at);
  END LOOP;
  IF held > 16 THEN
    UPDATE holdfast.resources r
       SET held = holding.held, counted_until = least(ends, at + interval '1 second')
     WHERE r.name = res;
  END IF;
END $$;

-- So many more hold, of whom the first is over at that time. Nothing to do where they are counted anyway.
CREATE OR REPLACE FUNCTION holdfast.count_on(res text, more bigint, ends timestamptz, at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE holdfast.resources r
     SET held = r.held + more,
         counted_until = CASE WHEN r.held + more > 16 THEN least(r.counted_until, ends)
           ELSE '-infinity' END
   WHERE r.name = res AND r.counted_until > at;
END $$;
