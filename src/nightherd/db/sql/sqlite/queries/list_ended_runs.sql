-- The runs that ended so since then, the last first; those that another run started are left out.
SELECT id, workflow_name, trigger_id, status, current_phase, started_at, updated_at, repo, issue_number, restart_count,
  finished_at, trigger_type, definition_hash, error, stopping, is_failing, attempt, retried_from, forked_from,
  root_run_id, parent_run_id, parent_node_id, concurrency_key, schedule, started_by, dedupe_key, worked_ms, limits,
  cost_microusd, number
FROM workflow_runs INDEXED BY workflow_runs_by_end
WHERE status = ?1 AND finished_at >= ?2 AND parent_run_id IS NULL
ORDER BY finished_at DESC, number DESC
LIMIT ?3;
