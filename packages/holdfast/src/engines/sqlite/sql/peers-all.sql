SELECT * FROM peers
