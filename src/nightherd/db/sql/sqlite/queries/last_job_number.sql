-- 0 when there is no job.
SELECT coalesce(max(number), 0) FROM jobs;
