-- What is to be sent to a target by an instant, in order.
SELECT * FROM notifications
WHERE target = ?1 AND due_at <= ?2 AND status IN ('pending', 'sending')
ORDER BY due_at, number LIMIT ?3;
