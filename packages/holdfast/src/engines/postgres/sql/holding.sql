-- How many hold a resource, and whether one of them is a writer, after grants that are over were
-- removed. Up to 16 holders are counted each time. More than 16, who can only be readers, are counted
-- once a second; in between, the row of the resource has their number. So a claim costs the same beside
-- 50 holders and beside 2,000. A renewal for a shorter time is then noticed up to a second late.
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

-- Adds `more` holders, of whom the first is over at `ends`. Does nothing if holders are counted each
-- time.
CREATE OR REPLACE FUNCTION holdfast.count_on(res text, more bigint, ends timestamptz, at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE holdfast.resources r
     SET held = r.held + more,
         counted_until = CASE WHEN r.held + more > 16 THEN least(r.counted_until, ends)
           ELSE '-infinity' END
   WHERE r.name = res AND r.counted_until > at;
END $$;
