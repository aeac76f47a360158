-- The agent's waiting job that was submitted first, whose session is free (?2: now).
SELECT jobs.id FROM jobs
LEFT JOIN sessions ON sessions.id = jobs.session_id
WHERE jobs.status = 'pending' AND jobs.agent = ?1
  AND (jobs.not_before IS NULL OR jobs.not_before <= ?2)
  AND (sessions.status IS NULL OR sessions.status IN ('created', 'paused'))
ORDER BY jobs.number
LIMIT 1;
