-- How many runs ended since then, by how; those that another run started are left out.
SELECT status, count(*) FROM workflow_runs INDEXED BY workflow_runs_by_end
WHERE status IN ('succeeded', 'failed', 'cancelled') AND finished_at >= ?1 AND parent_run_id IS NULL
GROUP BY status;
