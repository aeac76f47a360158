-- One page of workspaces, removed ones too, newest first, before a number; of one agent where ?3 names it.
SELECT * FROM workspaces WHERE number < ?1 AND (?3 IS NULL OR agent = ?3) ORDER BY number DESC LIMIT ?2;
