-- The messages that a job answers, in order.
SELECT * FROM chat_messages WHERE job_id = ?1 ORDER BY number;
