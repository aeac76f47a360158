-- A page of a conversation's messages, newest first, before a number.
SELECT * FROM chat_messages WHERE conversation_id = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3;
