-- One override by its key.
SELECT * FROM schedule_overrides WHERE id = ?1;
