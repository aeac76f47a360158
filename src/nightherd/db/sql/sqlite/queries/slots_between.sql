-- A schedule's newest slots that were due in a span of time.
SELECT * FROM slots WHERE schedule_id = ?1 AND due_at >= ?2 AND due_at < ?3 ORDER BY due_at DESC LIMIT ?4;
