-- A schedule's newest slots.
SELECT * FROM slots WHERE schedule_id = ?1 ORDER BY due_at DESC LIMIT ?2;
