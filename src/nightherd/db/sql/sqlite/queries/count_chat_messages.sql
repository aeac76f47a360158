-- How many messages a person sent to a bot since an instant.
SELECT COUNT(*) FROM chat_messages WHERE bot = ?1 AND user_id = ?2 AND received_at >= ?3;
