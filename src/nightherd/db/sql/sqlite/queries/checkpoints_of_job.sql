-- A job's checkpoints, first to last.
SELECT * FROM checkpoints WHERE job_id = ?1 ORDER BY number;
