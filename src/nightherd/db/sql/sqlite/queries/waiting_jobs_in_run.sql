-- Jobs of a run, and of runs below it, that wait and may be taken, first to last.
WITH RECURSIVE runs (id) AS (
  SELECT ?1
  UNION
  SELECT workflow_runs.id FROM workflow_runs JOIN runs ON workflow_runs.parent_run_id = runs.id
)
SELECT jobs.* FROM runs JOIN jobs ON jobs.workflow_run_id = runs.id
WHERE jobs.status = 'pending' AND (jobs.not_before IS NULL OR jobs.not_before <= ?2)
ORDER BY jobs.number LIMIT ?3;
