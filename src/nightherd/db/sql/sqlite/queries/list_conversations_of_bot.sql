-- A page of a bot's conversations, newest first, before a number.
SELECT * FROM chat_conversations WHERE bot = ?3 AND number < ?1 ORDER BY number DESC LIMIT ?2;
