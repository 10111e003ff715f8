-- Deletes resources that nobody holds or waits for. The caller has locked them.
CREATE OR REPLACE FUNCTION holdfast.drop_idle(names text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  res text;
BEGIN
  FOREACH res IN ARRAY names LOOP
    CONTINUE WHEN EXISTS (SELECT FROM holdfast.grants g WHERE g.resource = res
      UNION ALL SELECT FROM holdfast.waiters w WHERE w.resource = res);
    DELETE FROM holdfast.resources r WHERE r.name = res;
  END LOOP;
END $$;
