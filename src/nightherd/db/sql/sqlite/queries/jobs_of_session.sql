-- The jobs of a session that ever began, in the order in which they did.
SELECT * FROM jobs INDEXED BY jobs_by_session
WHERE session_id = ?1 AND epoch > 0
ORDER BY started_at, number;
