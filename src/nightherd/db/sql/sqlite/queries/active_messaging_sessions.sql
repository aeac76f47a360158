-- The active sessions of a conversation.
SELECT * FROM messaging_sessions WHERE conversation_id = ?1 AND active = 1 ORDER BY created_at, id;
