-- A bot's conversations in which a turn runs.
SELECT * FROM chat_conversations WHERE bot = ?1 AND turn_job_id IS NOT NULL ORDER BY number;
