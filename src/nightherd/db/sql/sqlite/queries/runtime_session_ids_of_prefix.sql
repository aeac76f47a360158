-- Sessions whose runtime's id begins with a text (?1 to ?2, which is beyond all of them), newest first, at most ?3.
SELECT id FROM sessions INDEXED BY sessions_by_runtime_id
WHERE runtime_session_id IS NOT NULL AND runtime_session_id >= ?1 AND runtime_session_id < ?2
ORDER BY created_at DESC, number DESC LIMIT ?3;
