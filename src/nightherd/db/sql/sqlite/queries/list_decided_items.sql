-- A page of what does not wait any more, newest first, before a number.
SELECT * FROM inbox_items INDEXED BY inbox_items_by_number
WHERE number < ?1 AND status <> 'pending' AND (?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR agent = ?4)
ORDER BY number DESC LIMIT ?2;
