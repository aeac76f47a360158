-- The jobs that ended so since then, the last first; those that are part of another job or a run are left out.
SELECT * FROM jobs INDEXED BY jobs_by_end
WHERE status = ?1 AND finished_at >= ?2 AND parent_job_id IS NULL AND workflow_run_id IS NULL
ORDER BY finished_at DESC, number DESC
LIMIT ?3;
