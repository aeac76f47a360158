-- What was used on a day: by an agent, jobs below its own included, if one is named, for a schedule if one is named.
SELECT
  coalesce(sum(cost_microusd + iif(?2 IS NULL, 0, below_cost_microusd)), 0),
  coalesce(sum(turns + iif(?2 IS NULL, 0, below_turns)), 0),
  coalesce(sum(tokens + iif(?2 IS NULL, 0, below_tokens)), 0)
FROM spending INDEXED BY spending_by_day
WHERE day = ?1 AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR schedule = ?3);
