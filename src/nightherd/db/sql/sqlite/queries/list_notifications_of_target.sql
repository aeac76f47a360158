-- The same for one target.
SELECT * FROM notifications
WHERE number < ?1 AND target = ?4 AND (?3 IS NULL OR status = ?3)
ORDER BY number DESC LIMIT ?2;
