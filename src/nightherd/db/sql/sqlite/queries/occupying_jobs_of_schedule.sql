-- A schedule's jobs that have not ended, oldest first, but for suspended ones with a session of their own.
SELECT jobs.* FROM jobs INDEXED BY jobs_of_schedule
LEFT JOIN sessions ON sessions.id = jobs.session_id
WHERE jobs.agent = ?1 AND jobs.schedule = ?2 AND jobs.schedule IS NOT NULL
  AND jobs.status IN ('pending', 'running', 'suspended')
  AND (jobs.status <> 'suspended' OR sessions.mode IS NULL OR sessions.mode <> 'fresh_per_job')
ORDER BY jobs.number
LIMIT ?3;
