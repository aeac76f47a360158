-- What other running jobs have set aside: of an agent if one is named, of a schedule if one is named.
SELECT coalesce(sum(cost_microusd), 0), coalesce(sum(tokens), 0)
FROM reservations
WHERE (cost_microusd > 0 OR tokens > 0)
  AND job_id <> ?1 AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR schedule = ?3);
