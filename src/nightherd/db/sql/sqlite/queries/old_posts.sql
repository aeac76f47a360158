-- Posts from before an instant whose texts are still there.
SELECT id FROM chat_posts WHERE created_at < ?1 AND removed_at IS NULL AND status IN ('sent', 'failed', 'dropped') ORDER BY created_at LIMIT ?2;
