-- Ids of inbox items in [?1, ?2), newest first.
SELECT id FROM inbox_items WHERE id >= ?1 AND id < ?2 ORDER BY number DESC LIMIT ?3;
