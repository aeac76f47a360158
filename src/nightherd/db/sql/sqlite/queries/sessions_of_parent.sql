-- The sessions forked from a session, first to last.
SELECT * FROM sessions INDEXED BY sessions_by_parent
WHERE parent_session_id IS NOT NULL AND parent_session_id = ?1
ORDER BY number;
