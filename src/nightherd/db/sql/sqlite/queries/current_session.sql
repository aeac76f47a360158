-- The current session of a key, if it is not over (?3, ?4: '' for an absent channel or schedule).
SELECT * FROM sessions
WHERE mode <> 'fresh_per_job' AND status NOT IN ('completed', 'expired') AND rank >= 0
  AND agent = ?1 AND mode = ?2 AND coalesce(channel_id, '') = ?3 AND coalesce(schedule, '') = ?4
ORDER BY coalesce(nullif(rank, 0), number) DESC
LIMIT 1;
