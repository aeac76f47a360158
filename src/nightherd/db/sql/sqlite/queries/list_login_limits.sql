-- The limits that stop jobs from starting after an instant.
SELECT * FROM login_limits WHERE next_start_at > ?1 ORDER BY id;
