-- One page of sessions of one status (?3), newest first; ?4 and ?5 narrow it by agent and mode when they are given.
SELECT * FROM sessions INDEXED BY sessions_by_status
WHERE removed_at IS NULL AND (created_at, number) < (coalesce((SELECT created_at FROM sessions WHERE number = ?1), '~'), ?1) AND status = ?3
  AND (?4 IS NULL OR agent = ?4) AND (?5 IS NULL OR mode = ?5)
ORDER BY created_at DESC, number DESC LIMIT ?2;
