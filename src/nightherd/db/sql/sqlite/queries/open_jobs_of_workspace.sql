-- The jobs that have not ended and work in a workspace, or worked in it last, in the order of submission.
SELECT * FROM jobs INDEXED BY jobs_in_workspace
WHERE workspace_id = ?1 AND status IN ('pending', 'running', 'suspended') ORDER BY number;
