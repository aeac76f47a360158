-- The browsers that a person is logged in with, the oldest first.
SELECT * FROM browser_sessions WHERE person = ?1 AND ended_at IS NULL ORDER BY created_at, id;
