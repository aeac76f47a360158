-- A page of notifications, newest first, before a number; with a status where it is named.
SELECT * FROM notifications
WHERE number < ?1 AND (?3 IS NULL OR status = ?3)
ORDER BY number DESC LIMIT ?2;
