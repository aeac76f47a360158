-- A bot's conversations in which something happened since an instant, the liveliest first.
SELECT * FROM chat_conversations WHERE bot = ?1 AND last_activity_at >= ?2 ORDER BY last_activity_at DESC LIMIT ?3;
