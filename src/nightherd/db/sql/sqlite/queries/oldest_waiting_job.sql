-- The agent's waiting job that was submitted first (?2: now); in each session, only the first that has not ended.
SELECT jobs.id FROM jobs
LEFT JOIN sessions ON sessions.id = jobs.session_id
WHERE jobs.status = 'pending' AND jobs.agent = ?1
  AND (jobs.not_before IS NULL OR jobs.not_before <= ?2)
  AND (sessions.status IS NULL OR sessions.status IN ('created', 'paused'))
  AND NOT EXISTS (
    SELECT 1 FROM jobs AS ahead INDEXED BY jobs_open_in_session
    WHERE ahead.session_id = jobs.session_id AND ahead.number < jobs.number
      AND ahead.status IN ('pending', 'running', 'suspended')
  )
ORDER BY jobs.number
LIMIT 1;
