-- First to last.
SELECT * FROM executions WHERE job_id = ?1 ORDER BY epoch;
