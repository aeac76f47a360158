-- One delivery by its key.
SELECT * FROM deliveries WHERE id = ?1;
