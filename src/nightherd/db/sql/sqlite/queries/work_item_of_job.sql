-- The issue that a job works on.
SELECT * FROM work_items WHERE job_id = ?1;
