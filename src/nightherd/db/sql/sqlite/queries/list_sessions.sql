-- One page of sessions, newest first.
SELECT * FROM sessions INDEXED BY sessions_kept
WHERE removed_at IS NULL AND number < ?1 ORDER BY number DESC LIMIT ?2;
