-- A schedule's suspended jobs with a session of their own, oldest first.
SELECT jobs.* FROM jobs INDEXED BY jobs_of_schedule
JOIN sessions ON sessions.id = jobs.session_id
WHERE jobs.agent = ?1 AND jobs.schedule = ?2 AND jobs.schedule IS NOT NULL
  AND jobs.status IN ('pending', 'running', 'suspended') AND jobs.status = 'suspended'
  AND sessions.mode = 'fresh_per_job'
ORDER BY jobs.number
LIMIT ?3;
