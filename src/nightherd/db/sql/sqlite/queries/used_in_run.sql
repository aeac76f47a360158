-- What all jobs of a run, of runs below it and of jobs below those have used and set aside, one left out;
-- and how many of them are no phases.
WITH RECURSIVE runs (id) AS (
  SELECT ?1
  UNION
  SELECT workflow_runs.id FROM workflow_runs JOIN runs ON workflow_runs.parent_run_id = runs.id
), below (id) AS (
  SELECT jobs.id FROM runs JOIN jobs ON jobs.workflow_run_id = runs.id
  UNION
  SELECT jobs.id FROM jobs JOIN below ON jobs.parent_job_id = below.id
)
SELECT
  coalesce(sum(jobs.cost_microusd + coalesce(reservations.cost_microusd, 0)), 0),
  coalesce(sum(jobs.turns), 0),
  coalesce(sum(
    jobs.input_tokens + jobs.output_tokens + jobs.cache_creation_input_tokens
    + jobs.cache_read_input_tokens + coalesce(reservations.tokens, 0)
  ), 0),
  coalesce(sum(jobs.workflow_run_id IS NULL), 0)
FROM below
JOIN jobs ON jobs.id = below.id
LEFT JOIN reservations ON reservations.job_id = below.id
WHERE below.id <> ?2;
