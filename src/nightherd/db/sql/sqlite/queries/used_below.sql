-- What all jobs below a job have used and set aside, one of them left out: cost, turns, tokens, how many they are.
WITH RECURSIVE below (id) AS (
  SELECT id FROM jobs WHERE parent_job_id = ?1
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
  count(*)
FROM below
JOIN jobs ON jobs.id = below.id
LEFT JOIN reservations ON reservations.job_id = below.id
WHERE below.id <> ?2;
