-- A schedule's jobs that have not ended, oldest first.
SELECT id FROM jobs
WHERE agent = ?1 AND schedule = ?2 AND schedule IS NOT NULL
  AND status IN ('pending', 'running', 'suspended')
ORDER BY number
LIMIT ?3;
