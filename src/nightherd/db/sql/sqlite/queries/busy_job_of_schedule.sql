-- A job of the schedule that runs or waits for a worker, leaving out one.
SELECT 1 FROM jobs INDEXED BY jobs_of_schedule
WHERE agent = ?1 AND schedule = ?2 AND schedule IS NOT NULL AND id <> ?3
  AND status IN ('pending', 'running', 'suspended') AND status <> 'suspended'
LIMIT 1;
