-- Workflows: pinned definitions, runs and their nodes. Lists read the small columns of workflow_runs only.

CREATE TABLE workflow_definitions (
  hash       TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  created_at TEXT NOT NULL,
  body       TEXT NOT NULL
) STRICT;

CREATE TABLE workflow_runs (
  id              TEXT PRIMARY KEY,
  workflow_name   TEXT NOT NULL,
  trigger_id      TEXT NOT NULL,
  status          TEXT NOT NULL DEFAULT 'running'
    CHECK (status IN ('queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled')),
  current_phase   TEXT NOT NULL,
  started_at      TEXT NOT NULL,
  updated_at      TEXT NOT NULL,
  repo            TEXT,
  issue_number    INTEGER,
  restart_count   INTEGER NOT NULL DEFAULT 0 CHECK (restart_count BETWEEN 0 AND 1000),
  finished_at     TEXT,
  trigger_type    TEXT NOT NULL DEFAULT 'manual',
  definition_hash TEXT NOT NULL DEFAULT '',
  error           TEXT,
  stopping        TEXT,
  is_failing      INTEGER NOT NULL DEFAULT 0 CHECK (is_failing IN (0, 1)),
  attempt         INTEGER NOT NULL DEFAULT 1,
  retried_from    TEXT,
  forked_from     TEXT,
  root_run_id     TEXT,
  parent_run_id   TEXT,
  parent_node_id  TEXT,
  concurrency_key TEXT,
  schedule        TEXT,
  started_by      TEXT,
  dedupe_key      TEXT,
  worked_ms       INTEGER NOT NULL DEFAULT 0,
  limits          TEXT NOT NULL DEFAULT '{}',
  cost_microusd   INTEGER NOT NULL DEFAULT 0,
  number          INTEGER NOT NULL,
  -- Projections of workflow_nodes, workflow_contexts and workflow_scratch, kept by the triggers below.
  phase_history   TEXT NOT NULL DEFAULT '[]',
  node_statuses   TEXT NOT NULL DEFAULT '{}',
  context         TEXT,
  scratch         TEXT
) STRICT;

CREATE UNIQUE INDEX workflow_runs_by_number ON workflow_runs (number);
CREATE UNIQUE INDEX workflow_runs_by_dedupe_key ON workflow_runs (dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX idx_workflow_runs_trigger ON workflow_runs (trigger_id, status);
CREATE INDEX idx_workflow_runs_status ON workflow_runs (status, started_at DESC, number DESC);
CREATE INDEX idx_workflow_runs_started_at ON workflow_runs (started_at DESC, number DESC);
CREATE INDEX idx_workflow_runs_name_started ON workflow_runs (workflow_name, started_at DESC, number DESC);
CREATE INDEX workflow_runs_name_status ON workflow_runs (workflow_name, status, started_at DESC, number DESC);
CREATE INDEX workflow_runs_open_of_key ON workflow_runs (concurrency_key, number)
  WHERE concurrency_key IS NOT NULL AND status IN ('queued', 'running', 'paused');
CREATE INDEX workflow_runs_open_of_schedule ON workflow_runs (workflow_name, schedule, number)
  WHERE schedule IS NOT NULL AND status IN ('queued', 'running', 'paused');
CREATE INDEX workflow_runs_of_parent ON workflow_runs (parent_run_id, number) WHERE parent_run_id IS NOT NULL;

CREATE TABLE workflow_contexts (
  run_id  TEXT PRIMARY KEY REFERENCES workflow_runs (id),
  context TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE TABLE workflow_scratch (
  run_id  TEXT PRIMARY KEY REFERENCES workflow_runs (id),
  scratch TEXT NOT NULL DEFAULT '{}' CHECK (length(CAST(scratch AS BLOB)) <= 131072)
) STRICT;

CREATE TABLE workflow_nodes (
  id           TEXT PRIMARY KEY,
  run_id       TEXT NOT NULL REFERENCES workflow_runs (id),
  path         TEXT NOT NULL,
  status       TEXT NOT NULL CHECK (status IN
    ('waiting', 'running', 'paused', 'succeeded', 'failed', 'skipped', 'cancelled')),
  kind         TEXT NOT NULL CHECK (kind IN ('job', 'child', 'gate', 'wait', 'group', 'until', 'none')),
  created_at   TEXT NOT NULL,
  iteration    INTEGER NOT NULL DEFAULT 0,
  item         INTEGER NOT NULL DEFAULT -1,
  attempt      INTEGER NOT NULL DEFAULT 1,
  ended_at     TEXT,
  job_id       TEXT,
  child_run_id TEXT,
  item_id      TEXT,
  due_at       TEXT,
  event        TEXT,
  exit_code    INTEGER,
  error        TEXT,
  cause        TEXT,
  is_final     INTEGER NOT NULL DEFAULT 0 CHECK (is_final IN (0, 1)),
  kept_from    TEXT,
  session_id   TEXT,
  message      TEXT,
  number       INTEGER NOT NULL DEFAULT 0,
  UNIQUE (run_id, path, iteration, item, attempt)
) STRICT;

CREATE INDEX workflow_nodes_of_run ON workflow_nodes (run_id, number);
CREATE INDEX workflow_nodes_due ON workflow_nodes (due_at) WHERE ended_at IS NULL AND due_at IS NOT NULL;

CREATE TABLE workflow_node_texts (
  node_id TEXT PRIMARY KEY REFERENCES workflow_nodes (id),
  content TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE TABLE workflow_events (
  id      TEXT PRIMARY KEY,
  run_id  TEXT NOT NULL REFERENCES workflow_runs (id),
  name    TEXT NOT NULL,
  at      TEXT NOT NULL,
  by      TEXT NOT NULL,
  payload TEXT NOT NULL DEFAULT '{}',
  node_id TEXT,
  number  INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX workflow_events_of_run ON workflow_events (run_id, number);

CREATE TABLE workflow_overrides (
  name       TEXT PRIMARY KEY,
  enabled    INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  updated_at TEXT NOT NULL,
  updated_by TEXT
) STRICT;

ALTER TABLE jobs ADD COLUMN workflow_run_id TEXT;
ALTER TABLE jobs ADD COLUMN node_id TEXT;
CREATE INDEX jobs_of_workflow_run ON jobs (workflow_run_id, number) WHERE workflow_run_id IS NOT NULL;

-- What other tools read; the money itself is kept in whole micro-dollars.
ALTER TABLE executions ADD COLUMN cost_usd REAL GENERATED ALWAYS AS (cost_microusd / 1000000.0) VIRTUAL;
ALTER TABLE executions ADD COLUMN output_text TEXT;

ALTER TABLE inbox_items ADD COLUMN workflow_run_id TEXT;
ALTER TABLE inbox_items ADD COLUMN node_id TEXT;
CREATE INDEX inbox_items_of_workflow_run ON inbox_items (workflow_run_id, number) WHERE workflow_run_id IS NOT NULL;

-- A due instant and a delivery may start runs. Their tables are made anew: a constraint cannot be changed.
CREATE TABLE slots_with_runs (
  id          TEXT PRIMARY KEY,
  schedule_id TEXT NOT NULL REFERENCES schedules (id) DEFERRABLE INITIALLY DEFERRED,
  due_at      TEXT NOT NULL,
  outcome     TEXT NOT NULL CHECK (outcome IN ('job', 'run', 'skipped')),
  decided_at  TEXT NOT NULL,
  job_id      TEXT REFERENCES jobs (id),
  reason      TEXT,
  run_id      TEXT,
  CHECK ((outcome = 'job') = (job_id IS NOT NULL)),
  CHECK ((outcome = 'run') = (run_id IS NOT NULL))
) STRICT;
INSERT INTO slots_with_runs (id, schedule_id, due_at, outcome, decided_at, job_id, reason)
SELECT id, schedule_id, due_at, outcome, decided_at, job_id, reason FROM slots;
DROP TABLE slots;
ALTER TABLE slots_with_runs RENAME TO slots;
CREATE INDEX slots_by_schedule ON slots (schedule_id, due_at);

CREATE TABLE deliveries_with_runs (
  id          TEXT PRIMARY KEY,
  endpoint    TEXT NOT NULL,
  delivery_id TEXT NOT NULL,
  received_at TEXT NOT NULL,
  outcome     TEXT NOT NULL CHECK (outcome IN ('job', 'run', 'ignored')),
  event       TEXT,
  size        INTEGER NOT NULL DEFAULT 0,
  sha256      TEXT NOT NULL DEFAULT '',
  job_id      TEXT REFERENCES jobs (id),
  reason      TEXT,
  run_ids     TEXT NOT NULL DEFAULT '',
  CHECK (outcome <> 'job' OR job_id IS NOT NULL),
  CHECK (outcome <> 'run' OR run_ids <> '')
) STRICT;
INSERT INTO deliveries_with_runs
  (id, endpoint, delivery_id, received_at, outcome, event, size, sha256, job_id, reason)
SELECT id, endpoint, delivery_id, received_at, outcome, event, size, sha256, job_id, reason FROM deliveries;
DROP TABLE deliveries;
ALTER TABLE deliveries_with_runs RENAME TO deliveries;
CREATE INDEX deliveries_by_endpoint ON deliveries (endpoint, received_at);

-- The gates of runs, and who answered them.
CREATE VIEW workflow_approvals AS
SELECT
  inbox_items.id,
  inbox_items.workflow_run_id,
  substr(inbox_items.node_id, length(inbox_items.workflow_run_id) + 2) AS gate,
  inbox_items.title AS summary,
  CASE
    WHEN inbox_items.status = 'pending' THEN 'pending'
    WHEN inbox_items.status IN ('approved', 'answered') THEN 'approved'
    ELSE 'rejected'
  END AS status,
  CASE inbox_items.kind WHEN 'question' THEN 'reply' ELSE 'approve' END AS kind,
  workflow_runs.started_by AS requested_by,
  inbox_items.decided_by AS responded_by,
  inbox_texts.reply AS response,
  inbox_items.decided_at AS responded_at,
  inbox_items.created_at
FROM inbox_items
JOIN workflow_runs ON workflow_runs.id = inbox_items.workflow_run_id
LEFT JOIN inbox_texts ON inbox_texts.item_id = inbox_items.id
WHERE inbox_items.node_id IS NOT NULL;

CREATE TRIGGER workflow_contexts_shown AFTER INSERT ON workflow_contexts BEGIN
  UPDATE workflow_runs SET context = NEW.context WHERE id = NEW.run_id;
END;

CREATE TRIGGER workflow_scratch_shown AFTER INSERT ON workflow_scratch BEGIN
  UPDATE workflow_runs SET scratch = NEW.scratch WHERE id = NEW.run_id;
END;

CREATE TRIGGER workflow_scratch_shown_again AFTER UPDATE ON workflow_scratch BEGIN
  UPDATE workflow_runs SET scratch = NEW.scratch WHERE id = NEW.run_id;
END;

-- Only whole phases of the workflow are shown, at most 500: what happens inside them is in workflow_nodes.
CREATE TRIGGER workflow_nodes_shown AFTER INSERT ON workflow_nodes
WHEN NEW.iteration = 0 AND NEW.item = -1 AND NEW.path NOT GLOB '*[/:]*' BEGIN
  UPDATE workflow_runs SET
    node_statuses = json_set(node_statuses, '$."' || NEW.path || '"', NEW.status),
    phase_history = CASE WHEN NEW.ended_at IS NULL THEN phase_history
      ELSE json_insert(phase_history, '$[#]',
        json_object('phase', NEW.path, 'timestamp', NEW.ended_at, 'success', json(iif(NEW.status = 'succeeded', 'true', 'false')), 'status', NEW.status))
      END
  WHERE id = NEW.run_id;
END;

CREATE TRIGGER workflow_nodes_shown_again AFTER UPDATE OF status ON workflow_nodes
WHEN NEW.iteration = 0 AND NEW.item = -1 AND NEW.path NOT GLOB '*[/:]*' AND NEW.status <> OLD.status BEGIN
  UPDATE workflow_runs SET
    node_statuses = json_set(node_statuses, '$."' || NEW.path || '"', NEW.status),
    phase_history = CASE WHEN NEW.ended_at IS NULL THEN phase_history
      ELSE json_insert(phase_history, '$[#]',
        json_object('phase', NEW.path, 'timestamp', NEW.ended_at, 'success', json(iif(NEW.status = 'succeeded', 'true', 'false')), 'status', NEW.status))
      END
  WHERE id = NEW.run_id;
END;
