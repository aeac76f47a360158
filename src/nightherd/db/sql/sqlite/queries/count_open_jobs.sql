-- How many jobs of each agent have not ended, by where they stand; history is not looked at.
SELECT agent, status, count(*) FROM jobs INDEXED BY jobs_by_status
WHERE status IN ('pending', 'running', 'suspended')
GROUP BY agent, status;
