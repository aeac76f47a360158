-- Every event that was sent to a run, first to last.
SELECT * FROM workflow_events WHERE run_id = ?1 ORDER BY number;
