-- Ids in [?1, ?2), newest first: many match, so they are met while walking back from the newest.
SELECT id FROM jobs NOT INDEXED
WHERE EXISTS (SELECT 1 FROM jobs AS any_job WHERE any_job.id >= ?1 AND any_job.id < ?2)
  AND id >= ?1 AND id < ?2
ORDER BY number DESC
LIMIT ?3;
