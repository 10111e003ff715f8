-- Deletes a peer unless a grant or a waiter still refers to it.
DELETE FROM peers WHERE id = ?1
  AND NOT EXISTS (SELECT 1 FROM grants WHERE peer = ?1)
  AND NOT EXISTS (SELECT 1 FROM waiters WHERE peer = ?1)
