-- All inbox items about a job, in the order of asking.
SELECT * FROM inbox_items WHERE job_id = ?1 ORDER BY number;
