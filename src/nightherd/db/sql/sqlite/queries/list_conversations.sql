-- A page of conversations, newest first, before a number.
SELECT * FROM chat_conversations WHERE number < ?1 ORDER BY number DESC LIMIT ?2;
