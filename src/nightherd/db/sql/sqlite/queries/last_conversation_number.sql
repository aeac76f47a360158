-- The highest number that a conversation has; 0 for none.
SELECT COALESCE(MAX(number), 0) FROM chat_conversations;
