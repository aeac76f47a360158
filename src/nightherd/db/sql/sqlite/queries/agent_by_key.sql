-- One agent by its key.
SELECT * FROM agents WHERE name = ?1;
