-- Ids of runs that begin so.
SELECT id FROM workflow_runs WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3;
