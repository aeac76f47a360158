-- A bot's conversations with something to send.
SELECT DISTINCT conversation_id FROM chat_posts WHERE bot = ?1 AND status IN ('pending', 'sending') ORDER BY conversation_id;
