-- One slot by its key.
SELECT * FROM slots WHERE id = ?1;
