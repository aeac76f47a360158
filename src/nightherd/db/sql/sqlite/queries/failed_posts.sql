-- What a bot could not send, newest first.
SELECT * FROM chat_posts WHERE bot = ?1 AND status = 'failed' ORDER BY number DESC LIMIT ?2;
