-- Every job that ever had a checkpoint.
SELECT DISTINCT job_id FROM checkpoints ORDER BY job_id;
