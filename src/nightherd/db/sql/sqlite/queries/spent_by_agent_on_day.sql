-- What every agent used on a day, with what jobs of others used below its own.
SELECT
  agent,
  sum(cost_microusd) + sum(below_cost_microusd),
  sum(turns) + sum(below_turns),
  sum(tokens) + sum(below_tokens)
FROM spending INDEXED BY spending_by_day
WHERE day = ?1
GROUP BY agent;
