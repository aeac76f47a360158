-- Everything that waits for a person, and what people answered. Lists read inbox_items only.

CREATE TABLE inbox_items (
  id          TEXT PRIMARY KEY,
  kind        TEXT NOT NULL CHECK (kind IN ('approval', 'question', 'limit', 'failure', 'reload')),
  status      TEXT NOT NULL CHECK (status IN
    ('pending', 'approved', 'rejected', 'answered', 'expired', 'superseded', 'cancelled')),
  created_at  TEXT NOT NULL,
  subject     TEXT NOT NULL,
  title       TEXT NOT NULL,
  dedupe_key  TEXT NOT NULL,
  hash        TEXT NOT NULL DEFAULT '',
  epoch       INTEGER NOT NULL DEFAULT 0,
  job_id      TEXT REFERENCES jobs (id),
  agent       TEXT,
  schedule    TEXT,
  tool        TEXT,
  tool_use_id TEXT,
  quorum      INTEGER NOT NULL DEFAULT 1,
  expires_at  TEXT,
  on_expiry   TEXT NOT NULL DEFAULT 'reject' CHECK (on_expiry IN ('reject', 'fail')),
  decided_at  TEXT,
  decided_by  TEXT,
  decided_via TEXT,
  verdict     TEXT,
  number      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX inbox_items_by_number ON inbox_items (number);
CREATE INDEX inbox_items_pending ON inbox_items (number) WHERE status = 'pending';
CREATE INDEX inbox_items_of_job ON inbox_items (job_id, number);
CREATE INDEX inbox_items_to_expire ON inbox_items (expires_at) WHERE status = 'pending';
CREATE INDEX inbox_items_failed ON inbox_items (agent, schedule) WHERE status = 'pending' AND kind = 'failure';

CREATE TABLE inbox_texts (
  item_id TEXT PRIMARY KEY REFERENCES inbox_items (id),
  body    TEXT NOT NULL DEFAULT '{}',
  terms   TEXT NOT NULL DEFAULT '{}',
  reply   TEXT,
  input   TEXT
) STRICT;

CREATE TABLE inbox_answers (
  id      TEXT PRIMARY KEY,
  item_id TEXT NOT NULL REFERENCES inbox_items (id),
  at      TEXT NOT NULL,
  by      TEXT NOT NULL,
  via     TEXT NOT NULL,
  verdict TEXT NOT NULL,
  text    TEXT,
  number  INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE INDEX inbox_answers_of_item ON inbox_answers (item_id, number);
