-- Every node of a run, in the order of beginning.
SELECT * FROM workflow_nodes WHERE run_id = ?1 ORDER BY number;
