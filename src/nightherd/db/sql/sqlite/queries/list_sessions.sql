-- One page of sessions, newest first, after the session that the cursor names; a cursor that names none is before all.
SELECT * FROM sessions INDEXED BY sessions_kept
WHERE removed_at IS NULL AND (created_at, number) < (coalesce((SELECT created_at FROM sessions WHERE number = ?1), '~'), ?1) ORDER BY created_at DESC, number DESC LIMIT ?2;
