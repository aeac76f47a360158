-- What was used on all days together.
SELECT coalesce(sum(cost_microusd), 0), coalesce(sum(turns), 0), coalesce(sum(tokens), 0)
FROM spending;
