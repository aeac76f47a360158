-- One schedule by its key.
SELECT * FROM schedules WHERE id = ?1;
