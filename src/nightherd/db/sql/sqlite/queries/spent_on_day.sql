-- What was used on a day: by an agent if one is named, for a schedule if one is named.
SELECT coalesce(sum(cost_microusd), 0), coalesce(sum(turns), 0), coalesce(sum(tokens), 0)
FROM spending INDEXED BY spending_by_day
WHERE day = ?1 AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR schedule = ?3);
