-- What jobs of other agents used on a day below those of an agent, for a schedule if one is named.
SELECT
  coalesce(sum(below_cost_microusd), 0),
  coalesce(sum(below_turns), 0),
  coalesce(sum(below_tokens), 0)
FROM spending INDEXED BY spending_by_day
WHERE day = ?1 AND agent = ?2 AND (?3 IS NULL OR schedule = ?3);
