-- All jobs below a job, at any level, first to last.
WITH RECURSIVE below (id) AS (
  SELECT id FROM jobs WHERE parent_job_id = ?1
  UNION
  SELECT jobs.id FROM jobs JOIN below ON jobs.parent_job_id = below.id
)
SELECT jobs.* FROM below JOIN jobs ON jobs.id = below.id ORDER BY jobs.number;
