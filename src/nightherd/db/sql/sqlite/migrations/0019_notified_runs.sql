-- People are told of runs and what phases say. The tables are made anew: a constraint cannot be changed.
CREATE TABLE notifications_with_runs (
  id            TEXT PRIMARY KEY,
  target        TEXT NOT NULL,
  event         TEXT NOT NULL CHECK (event IN
    ('completed', 'failed', 'suspended', 'approval', 'question', 'limit', 'lost', 'message', 'digest')),
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
  run_id        TEXT,
  attempts      INTEGER NOT NULL DEFAULT 0,
  claimed_by    TEXT,
  claimed_until TEXT,
  sent_at       TEXT,
  last_error    TEXT,
  number        INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO notifications_with_runs
  (id, target, event, status, created_at, due_at, give_up_at, dedupe_key, subject, job_id, item_id, agent, schedule,
   attempts, claimed_by, claimed_until, sent_at, last_error, number)
SELECT
  id, target, event, status, created_at, due_at, give_up_at, dedupe_key, subject, job_id, item_id, agent, schedule,
  attempts, claimed_by, claimed_until, sent_at, last_error, number
FROM notifications;

CREATE TABLE notification_texts_with_runs (
  notification_id TEXT PRIMARY KEY REFERENCES notifications_with_runs (id),
  fields          TEXT NOT NULL DEFAULT '{}'
) STRICT;
INSERT INTO notification_texts_with_runs (notification_id, fields) SELECT notification_id, fields FROM notification_texts;

DROP TABLE notification_texts;
DROP TABLE notifications;
ALTER TABLE notifications_with_runs RENAME TO notifications;
ALTER TABLE notification_texts_with_runs RENAME TO notification_texts;

CREATE INDEX notifications_by_number ON notifications (number);
CREATE INDEX notifications_of_target ON notifications (target, number);
CREATE INDEX notifications_open ON notifications (target, due_at, number) WHERE status IN ('pending', 'sending');
