-- Everything that blocks a resource, or did until a moment ago.
SELECT * FROM grants WHERE resource = ?1
