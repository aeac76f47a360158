-- One worker by its key.
SELECT * FROM workers WHERE id = ?1;
