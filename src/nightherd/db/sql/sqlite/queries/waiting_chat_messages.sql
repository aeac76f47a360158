-- The messages of a conversation that no turn has yet, in order.
SELECT * FROM chat_messages WHERE conversation_id = ?1 AND status = 'waiting' ORDER BY number LIMIT ?2;
