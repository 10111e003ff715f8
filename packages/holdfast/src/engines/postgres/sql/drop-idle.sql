-- Forgets resources that nobody holds or waits for. The caller has locked them.
CREATE OR REPLACE FUNCTION holdfast.drop_idle(names text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM holdfast.resources r
   WHERE r.name = ANY (names)
     AND NOT EXISTS (SELECT FROM holdfast.grants g WHERE g.resource = r.name)
     AND NOT EXISTS (SELECT FROM holdfast.waiters w WHERE w.resource = r.name);
END $$;
