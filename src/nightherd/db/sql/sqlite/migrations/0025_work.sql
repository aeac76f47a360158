-- Issues of trackers that are work: each taken once at a time, and how their sources are doing.

CREATE TABLE work_items (
  id            TEXT PRIMARY KEY,
  source        TEXT NOT NULL,
  issue         INTEGER NOT NULL,
  agent         TEXT NOT NULL,
  schedule      TEXT NOT NULL,
  status        TEXT NOT NULL CHECK (status IN
    ('reserved', 'held', 'working', 'settling', 'done', 'failed', 'released', 'lost')),
  claim         TEXT NOT NULL,
  reserved_at   TEXT NOT NULL,
  changed_at    TEXT NOT NULL,
  terms         TEXT NOT NULL,
  title         TEXT NOT NULL DEFAULT '',
  attempts      INTEGER NOT NULL DEFAULT 0,
  job_id        TEXT REFERENCES jobs (id),
  outcome       TEXT CHECK (outcome IN ('success', 'failure', 'cancelled', 'unused', 'released')),
  is_labelled   INTEGER NOT NULL DEFAULT 0 CHECK (is_labelled IN (0, 1)),
  is_told       INTEGER NOT NULL DEFAULT 0 CHECK (is_told IN (0, 1)),
  is_relabelled INTEGER NOT NULL DEFAULT 0 CHECK (is_relabelled IN (0, 1)),
  comment_id    TEXT,
  not_before    TEXT,
  due_at        TEXT,
  tries         INTEGER NOT NULL DEFAULT 0,
  last_error    TEXT,
  step_by       TEXT,
  step_until    TEXT
) STRICT;

CREATE INDEX work_items_open ON work_items (reserved_at, id)
  WHERE status IN ('reserved', 'held', 'working', 'settling');
CREATE INDEX work_items_by_change ON work_items (changed_at, id);
CREATE INDEX work_items_of_job ON work_items (job_id) WHERE job_id IS NOT NULL;

CREATE TABLE work_sources (
  id            TEXT PRIMARY KEY,
  status        TEXT NOT NULL CHECK (status IN ('ok', 'limited', 'refused', 'missing', 'unavailable')),
  checked_at    TEXT NOT NULL,
  blocked_until TEXT,
  error         TEXT,
  failures      INTEGER NOT NULL DEFAULT 0,
  open_issues   INTEGER
) STRICT;
