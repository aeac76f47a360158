-- What people were asked by a run, in the order of asking.
SELECT * FROM inbox_items WHERE workflow_run_id = ?1 ORDER BY number;
