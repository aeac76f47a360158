-- 0 when there is no session.
SELECT coalesce(max(number), 0) FROM sessions;
