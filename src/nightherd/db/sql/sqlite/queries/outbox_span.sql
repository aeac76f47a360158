-- The first and last change it holds; 0 and 0 when it holds none.
SELECT
  (SELECT coalesce(min(change), 0) FROM outbox),
  (SELECT coalesce(max(change), 0) FROM outbox);
