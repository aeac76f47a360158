-- The highest number that a message has; 0 for none.
SELECT COALESCE(MAX(number), 0) FROM chat_messages;
