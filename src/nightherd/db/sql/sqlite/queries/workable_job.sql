-- A waiting job of the agent that no suspended job of its session holds up.
SELECT 1 FROM jobs INDEXED BY jobs_waiting
WHERE jobs.status = 'pending' AND jobs.agent = ?1
  AND NOT EXISTS (
    SELECT 1 FROM jobs AS ahead INDEXED BY jobs_open_in_session
    WHERE ahead.session_id = jobs.session_id AND ahead.number < jobs.number
      AND ahead.status IN ('pending', 'running', 'suspended') AND ahead.status = 'suspended'
  )
LIMIT 1;
