SELECT * FROM reservations WHERE job_id = ?1;
