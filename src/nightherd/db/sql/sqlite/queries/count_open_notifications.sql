-- How many notifications are to be sent by an instant, by target.
SELECT target, COUNT(*) FROM notifications
WHERE status IN ('pending', 'sending') AND due_at <= ?1 GROUP BY target;
