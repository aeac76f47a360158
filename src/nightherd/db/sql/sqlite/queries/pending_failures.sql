-- The open items about failed jobs of a schedule, in the order of asking.
SELECT * FROM inbox_items
WHERE agent = ?1 AND schedule = ?2 AND status = 'pending' AND kind = 'failure' ORDER BY number;
