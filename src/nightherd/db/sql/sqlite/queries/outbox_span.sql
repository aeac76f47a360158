-- The first and last change it holds; 0 and 0 when it holds none.
SELECT coalesce(min(change), 0), coalesce(max(change), 0) FROM outbox;
