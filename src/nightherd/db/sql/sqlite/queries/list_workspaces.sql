-- One page of workspaces that are not removed, newest first, before a number; of one agent where ?3 names it.
SELECT * FROM workspaces WHERE status <> 'removed' AND number < ?1 AND (?3 IS NULL OR agent = ?3)
ORDER BY number DESC LIMIT ?2;
