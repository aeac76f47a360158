-- A job of the schedule that has not ended, leaving out one.
SELECT 1 FROM jobs
WHERE agent = ?1 AND status IN ('pending', 'running', 'suspended') AND schedule = ?2 AND id <> ?3
LIMIT 1;
