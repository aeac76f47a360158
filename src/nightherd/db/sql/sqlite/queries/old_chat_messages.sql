-- Messages from before an instant whose texts are still there.
SELECT id FROM chat_messages WHERE received_at < ?1 AND removed_at IS NULL AND status <> 'waiting' ORDER BY received_at LIMIT ?2;
