-- By what people prove who they are: named tokens, and links that answer one inbox item once. Only hashes are kept.

CREATE TABLE tokens (
  name       TEXT PRIMARY KEY,
  hash       TEXT NOT NULL,
  created_at TEXT NOT NULL,
  created_by TEXT NOT NULL,
  revoked_at TEXT,
  revoked_by TEXT
) STRICT;

CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash) WHERE revoked_at IS NULL;

CREATE TABLE answer_links (
  id         TEXT PRIMARY KEY,
  item_id    TEXT NOT NULL REFERENCES inbox_items (id),
  approver   TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  used_at    TEXT
) STRICT;
