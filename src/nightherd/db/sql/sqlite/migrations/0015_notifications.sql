-- What people are told outside nightherd: a durable outbox, the targets, and how far the ledger was followed.

CREATE TABLE notify_cursors (
  id     TEXT PRIMARY KEY,
  change INTEGER NOT NULL
) STRICT;

CREATE TABLE notify_targets (
  id            TEXT PRIMARY KEY,
  since         INTEGER NOT NULL,
  is_active     INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
  failures      INTEGER NOT NULL DEFAULT 0,
  failing_since TEXT,
  last_error    TEXT,
  paused_until  TEXT,
  last_sent_at  TEXT,
  digest_at     TEXT
) STRICT;

CREATE TABLE notifications (
  id            TEXT PRIMARY KEY,
  target        TEXT NOT NULL,
  event         TEXT NOT NULL CHECK (event IN
    ('completed', 'failed', 'suspended', 'approval', 'question', 'limit', 'lost', 'digest')),
  status        TEXT NOT NULL CHECK (status IN ('pending', 'sending', 'sent', 'failed', 'dropped')),
  created_at    TEXT NOT NULL,
  due_at        TEXT NOT NULL,
  give_up_at    TEXT NOT NULL,
  dedupe_key    TEXT NOT NULL,
  subject       TEXT NOT NULL,
  job_id        TEXT,
  item_id       TEXT,
  agent         TEXT,
  schedule      TEXT,
  attempts      INTEGER NOT NULL DEFAULT 0,
  claimed_by    TEXT,
  claimed_until TEXT,
  sent_at       TEXT,
  last_error    TEXT,
  number        INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX notifications_by_number ON notifications (number);
CREATE INDEX notifications_of_target ON notifications (target, number);
CREATE INDEX notifications_open ON notifications (target, due_at, number) WHERE status IN ('pending', 'sending');

CREATE TABLE notification_texts (
  notification_id TEXT PRIMARY KEY REFERENCES notifications (id),
  fields          TEXT NOT NULL DEFAULT '{}'
) STRICT;
