-- Of an agent, leaving one out.
SELECT id FROM jobs
WHERE agent = ?1 AND status = 'running' AND id <> ?2
ORDER BY created_at, number
LIMIT 1;
