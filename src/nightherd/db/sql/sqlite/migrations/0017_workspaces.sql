-- Where jobs work: one row for each directory that was made for a job, a session or a run.

CREATE TABLE workspaces (
  id           TEXT PRIMARY KEY,
  agent        TEXT NOT NULL,
  mode         TEXT NOT NULL,
  scope        TEXT NOT NULL,
  status       TEXT NOT NULL CHECK (status IN ('making', 'ready', 'removing', 'removed')),
  root         TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  last_used_at TEXT NOT NULL,
  keep         TEXT NOT NULL,
  session_id   TEXT,
  job_id       TEXT,
  store        TEXT,
  prefix       TEXT NOT NULL DEFAULT '',
  branch       TEXT,
  base         TEXT,
  base_commit  TEXT,
  base_tree    TEXT,
  tree         TEXT,
  head         TEXT,
  left_out     INTEGER NOT NULL DEFAULT 0,
  size_bytes   INTEGER,
  landed       TEXT,
  landed_tree  TEXT,
  landed_at    TEXT,
  removed_at   TEXT,
  number       INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX workspaces_by_number ON workspaces (number);
CREATE INDEX workspaces_by_agent ON workspaces (agent, number);
CREATE INDEX workspaces_kept ON workspaces (number) WHERE status <> 'removed';

ALTER TABLE jobs ADD COLUMN workspace_id TEXT;
CREATE INDEX jobs_in_workspace ON jobs (workspace_id, number) WHERE workspace_id IS NOT NULL;

ALTER TABLE sessions ADD COLUMN root TEXT;
ALTER TABLE sessions ADD COLUMN workspace_id TEXT;
