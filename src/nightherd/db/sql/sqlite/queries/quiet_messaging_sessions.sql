-- An agent's active sessions in which nothing was said since an instant.
SELECT id FROM messaging_sessions WHERE agent = ?1 AND last_activity_at < ?2 AND active = 1 ORDER BY last_activity_at LIMIT ?3;
