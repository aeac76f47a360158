-- The post of a conversation that is to be sent next.
SELECT * FROM chat_posts WHERE conversation_id = ?1 AND status IN ('pending', 'sending') ORDER BY number LIMIT 1;
