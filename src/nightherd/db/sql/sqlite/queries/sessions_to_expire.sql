-- Sessions that wait and are too old, or have gone unused for too long, at a time (?1), the longest unused first.
SELECT * FROM sessions INDEXED BY sessions_used
WHERE removed_at IS NULL AND status IN ('created', 'paused') AND last_active_at <= ?1
  AND (unixepoch(?1, 'subsec') - unixepoch(last_active_at, 'subsec') >= max_idle_s
       OR unixepoch(?1, 'subsec') - unixepoch(created_at, 'subsec') >= max_age_s)
ORDER BY last_active_at
LIMIT ?2;
