-- A bot's conversations in which messages wait.
SELECT DISTINCT conversation_id FROM chat_messages WHERE bot = ?1 AND status = 'waiting' ORDER BY conversation_id;
