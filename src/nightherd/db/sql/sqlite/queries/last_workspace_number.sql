-- 0 when there is no workspace.
SELECT coalesce(max(number), 0) FROM workspaces;
