-- Ids in [?1, ?2), newest first: many match, so they are met while walking back from the newest.
SELECT id FROM jobs INDEXED BY jobs_by_time
WHERE EXISTS (SELECT 1 FROM jobs AS any_job WHERE any_job.id >= ?1 AND any_job.id < ?2)
  AND id >= ?1 AND id < ?2
ORDER BY created_at DESC, number DESC
LIMIT ?3;
