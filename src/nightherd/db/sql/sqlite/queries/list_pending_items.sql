-- A page of what waits for a person, newest first, before a number; of a kind and an agent where they are named.
SELECT * FROM inbox_items
WHERE number < ?1 AND status = 'pending' AND (?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR agent = ?4)
ORDER BY number DESC LIMIT ?2;
