-- One checkpoint by its key.
SELECT * FROM checkpoints WHERE id = ?1;
