-- A peer is forgotten when nothing refers to it any more.
DELETE FROM peers WHERE id = ?1
  AND NOT EXISTS (SELECT 1 FROM grants WHERE peer = ?1)
  AND NOT EXISTS (SELECT 1 FROM waiters WHERE peer = ?1)
