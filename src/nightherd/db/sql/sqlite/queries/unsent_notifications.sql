-- Everything that is still to be sent to a target, due or not.
SELECT * FROM notifications WHERE target = ?1 AND status IN ('pending', 'sending') ORDER BY due_at, number;
