-- The post that the platform calls so, in a conversation.
SELECT * FROM chat_posts WHERE conversation_id = ?1 AND message_id = ?2 ORDER BY number DESC LIMIT 1;
