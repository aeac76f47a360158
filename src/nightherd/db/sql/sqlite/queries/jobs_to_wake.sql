-- Suspended jobs whose time has come (?1: now), the longest waiting first.
SELECT id FROM jobs INDEXED BY jobs_to_wake
WHERE status = 'suspended' AND not_before IS NOT NULL AND not_before <= ?1
ORDER BY not_before
LIMIT ?2;
