-- Runs with a node whose time has come.
SELECT DISTINCT run_id FROM workflow_nodes
WHERE ended_at IS NULL AND due_at IS NOT NULL AND due_at <= ?1 AND status <> 'cancelled'
LIMIT ?2;
