-- Rate limits that last until a named time, by the login (or the login and the family of models) they belong to.
CREATE TABLE login_limits (
  id TEXT PRIMARY KEY,
  until TEXT NOT NULL,
  next_start_at TEXT NOT NULL,
  recorded_at TEXT NOT NULL,
  job_id TEXT,
  name TEXT
) STRICT;

ALTER TABLE agents ADD COLUMN login TEXT;
