-- Roles of named tokens, and the browsers that are logged in to the dashboard. Only hashes are kept.

ALTER TABLE tokens ADD COLUMN role TEXT NOT NULL DEFAULT 'admin' CHECK (role IN ('viewer', 'operator', 'admin'));

CREATE TABLE browser_sessions (
  id          TEXT PRIMARY KEY,
  secret_hash TEXT NOT NULL,
  person      TEXT NOT NULL,
  token_hash  TEXT,
  created_at  TEXT NOT NULL,
  expires_at  TEXT NOT NULL,
  ended_at    TEXT
) STRICT;

CREATE INDEX browser_sessions_open ON browser_sessions (person) WHERE ended_at IS NULL;
