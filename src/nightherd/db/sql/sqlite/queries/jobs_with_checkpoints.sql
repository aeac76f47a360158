-- Every job that has a checkpoint now.
SELECT DISTINCT job_id FROM checkpoints INDEXED BY checkpoints_kept WHERE removed_at IS NULL ORDER BY job_id;
