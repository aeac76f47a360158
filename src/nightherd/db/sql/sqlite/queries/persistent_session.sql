-- The open persistent session of an agent that became the current one last, of any schedule.
SELECT * FROM sessions INDEXED BY sessions_current
WHERE mode <> 'fresh_per_job' AND status NOT IN ('completed', 'expired') AND rank >= 0
  AND agent = ?1 AND mode = 'persistent'
ORDER BY coalesce(nullif(rank, 0), number) DESC
LIMIT 1;
