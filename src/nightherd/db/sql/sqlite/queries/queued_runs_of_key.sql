-- Runs of a concurrency key that are queued, oldest first.
SELECT id, workflow_name, trigger_id, status, current_phase, started_at, updated_at, repo, issue_number, restart_count,
  finished_at, trigger_type, definition_hash, error, stopping, is_failing, attempt, retried_from, forked_from,
  root_run_id, parent_run_id, parent_node_id, concurrency_key, schedule, started_by, dedupe_key, worked_ms, limits,
  cost_microusd, number
FROM workflow_runs WHERE concurrency_key = ?1 AND status IN ('queued', 'running', 'paused') AND +status = 'queued' ORDER BY number LIMIT ?2;
