-- Newest first, from before the cursor on.
SELECT * FROM jobs WHERE number < ?1 AND status = ?3 ORDER BY number DESC LIMIT ?2;
