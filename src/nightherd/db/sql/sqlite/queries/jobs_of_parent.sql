-- The jobs that a job has made, first to last.
SELECT * FROM jobs WHERE parent_job_id = ?1 ORDER BY number;
