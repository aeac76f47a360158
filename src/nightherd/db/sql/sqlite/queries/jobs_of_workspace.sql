-- The jobs that worked in a workspace, newest first, at most ?2.
SELECT * FROM jobs INDEXED BY jobs_in_workspace WHERE workspace_id = ?1 ORDER BY number DESC LIMIT ?2;
