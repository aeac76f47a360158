-- How many items wait, by kind.
SELECT kind, count(*) FROM inbox_items WHERE status = 'pending' GROUP BY kind;
