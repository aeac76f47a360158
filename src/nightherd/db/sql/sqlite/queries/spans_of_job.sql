-- When its executions began and ended, first to last.
SELECT started_at, finished_at FROM executions WHERE job_id = ?1 ORDER BY epoch;
