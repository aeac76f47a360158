-- What other running jobs have set aside: those of an agent and all below them if one is named, of a schedule if one is
-- named.
WITH RECURSIVE above (held, id) AS (
  SELECT job_id, job_id FROM reservations WHERE cost_microusd > 0 OR tokens > 0
  UNION
  SELECT above.held, jobs.parent_job_id
  FROM above JOIN jobs ON jobs.id = above.id
  WHERE jobs.parent_job_id IS NOT NULL
)
SELECT coalesce(sum(cost_microusd), 0), coalesce(sum(tokens), 0)
FROM reservations
WHERE (cost_microusd > 0 OR tokens > 0)
  AND job_id <> ?1
  AND (?2 IS NULL OR job_id IN (
    SELECT above.held
    FROM above JOIN jobs ON jobs.id = above.id
    WHERE jobs.agent = ?2 AND (?3 IS NULL OR jobs.schedule = ?3)
  ));
