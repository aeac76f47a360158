-- Workspace ids that begin with a text (?1 to ?2, which is beyond all of them), newest first, at most ?3.
SELECT id FROM workspaces WHERE id >= ?1 AND id < ?2 ORDER BY +number DESC LIMIT ?3;
