-- The agents that have jobs waiting: one probe of the index per agent, however many jobs wait.
WITH RECURSIVE waiting (agent) AS (
  SELECT min(agent) FROM jobs INDEXED BY jobs_waiting WHERE status = 'pending'
  UNION ALL
  SELECT (
    SELECT min(agent) FROM jobs INDEXED BY jobs_waiting
    WHERE status = 'pending' AND agent > waiting.agent
  )
  FROM waiting
  WHERE waiting.agent IS NOT NULL
)
SELECT agent FROM waiting WHERE agent IS NOT NULL;
