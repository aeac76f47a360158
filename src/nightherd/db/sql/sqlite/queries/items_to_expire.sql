-- Items whose time has passed, the longest first.
SELECT * FROM inbox_items WHERE status = 'pending' AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2;
