-- How many jobs of a session are not over.
SELECT count(*) FROM jobs INDEXED BY jobs_open_in_session
WHERE session_id = ?1 AND status IN ('pending', 'running', 'suspended');
