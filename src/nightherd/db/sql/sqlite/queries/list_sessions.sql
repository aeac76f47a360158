-- One page of sessions, newest first.
SELECT * FROM sessions WHERE number < ?1 ORDER BY number DESC LIMIT ?2;
