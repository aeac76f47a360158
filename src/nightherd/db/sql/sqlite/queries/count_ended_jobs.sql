-- How many jobs ended since then, by how; those that are part of another job or a run are left out.
SELECT status, count(*) FROM jobs INDEXED BY jobs_by_end
WHERE status IN ('completed', 'failed', 'cancelled') AND finished_at >= ?1
  AND parent_job_id IS NULL AND workflow_run_id IS NULL
GROUP BY status;
