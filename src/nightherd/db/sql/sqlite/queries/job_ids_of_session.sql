-- All jobs of a session, in the order in which they were submitted.
SELECT id FROM jobs INDEXED BY jobs_by_session WHERE session_id = ?1 ORDER BY number;
