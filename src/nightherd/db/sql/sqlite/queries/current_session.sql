-- The newest session of a key that is not over (?3, ?4: '' for an absent channel or schedule).
SELECT * FROM sessions
WHERE mode <> 'fresh_per_job' AND status NOT IN ('completed', 'expired')
  AND agent = ?1 AND mode = ?2 AND coalesce(channel_id, '') = ?3 AND coalesce(schedule, '') = ?4
ORDER BY number DESC
LIMIT 1;
