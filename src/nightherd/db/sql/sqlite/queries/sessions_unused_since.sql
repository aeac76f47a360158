-- Sessions that wait and were not used after a time (?1), the longest unused first.
SELECT * FROM sessions INDEXED BY sessions_used
WHERE removed_at IS NULL AND status IN ('created', 'paused') AND last_active_at <= ?1
ORDER BY last_active_at
LIMIT ?2;
