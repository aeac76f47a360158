-- What was answered to an item, first to last.
SELECT * FROM inbox_answers WHERE item_id = ?1 ORDER BY number;
