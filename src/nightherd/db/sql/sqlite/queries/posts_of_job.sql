-- The posts of a turn, in order.
SELECT * FROM chat_posts WHERE job_id = ?1 ORDER BY number;
