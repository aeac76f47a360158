-- Every job that is a phase of the run, first to last.
SELECT * FROM jobs WHERE workflow_run_id = ?1 ORDER BY number;
