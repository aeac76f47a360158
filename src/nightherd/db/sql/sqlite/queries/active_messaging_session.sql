-- A person's active session with an agent in a place.
SELECT * FROM messaging_sessions
WHERE agent = ?1 AND platform = ?2 AND channel_id = ?3 AND ifnull(thread_id, '') = ?4 AND user_id = ?5 AND active = 1;
