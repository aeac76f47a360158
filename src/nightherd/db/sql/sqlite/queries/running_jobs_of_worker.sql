-- A worker's running jobs.
SELECT * FROM jobs WHERE status = 'running' AND worker = ?1 ORDER BY number;
