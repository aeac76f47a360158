-- The highest number of a run.
SELECT coalesce(max(number), 0) FROM workflow_runs;
