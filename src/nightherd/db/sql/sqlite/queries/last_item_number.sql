-- 0 when there is no inbox item.
SELECT coalesce(max(number), 0) FROM inbox_items;
