-- Newest first, after the run that the cursor names; a cursor that names none is before them all.
SELECT id, workflow_name, trigger_id, status, current_phase, started_at, updated_at, repo, issue_number, restart_count,
  finished_at, trigger_type, definition_hash, error, stopping, is_failing, attempt, retried_from, forked_from,
  root_run_id, parent_run_id, parent_node_id, concurrency_key, schedule, started_by, dedupe_key, worked_ms, limits,
  cost_microusd, number
FROM workflow_runs
WHERE (started_at, number) < (coalesce((SELECT started_at FROM workflow_runs WHERE number = ?1), '~'), ?1) AND workflow_name = ?3 AND status = ?4
ORDER BY started_at DESC, number DESC
LIMIT ?2;
