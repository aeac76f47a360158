-- How many runs of each workflow have not ended.
SELECT workflow_name, status, count(*) FROM workflow_runs
WHERE status IN ('queued', 'running', 'paused') GROUP BY workflow_name, status;
