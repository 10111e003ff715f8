SELECT * FROM peers WHERE id = ?1
