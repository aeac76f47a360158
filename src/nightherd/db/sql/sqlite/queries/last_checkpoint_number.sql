-- 0 when the job has none.
SELECT coalesce(max(number), 0) FROM checkpoints WHERE job_id = ?1;
