-- The sessions with one of a runtime's own ids, newest first.
SELECT * FROM sessions WHERE runtime_session_id = ?1 ORDER BY number DESC;
