-- The item that has waited longest for a person.
SELECT * FROM inbox_items WHERE status = 'pending' ORDER BY number LIMIT 1;
