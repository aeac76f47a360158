-- Jobs, their texts, executions, sessions, and the outbox that feeds the ledger.
-- Timestamps are UTC text of fixed width (YYYY-MM-DDTHH:MM:SS.ffffffZ), so text order is time order.
-- Money is integer micro-dollars, flags are 0 or 1, maps are JSON text.

CREATE TABLE migrations (
  number     INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  checksum   TEXT NOT NULL,
  applied_at TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
  number             INTEGER PRIMARY KEY,
  id                 TEXT NOT NULL UNIQUE,
  agent              TEXT NOT NULL,
  mode               TEXT NOT NULL CHECK (mode IN ('fresh_per_job', 'persistent', 'per_channel')),
  status             TEXT NOT NULL CHECK (status IN ('created', 'active', 'paused', 'completed', 'expired')),
  runtime_type       TEXT NOT NULL,
  working_directory  TEXT NOT NULL,
  created_at         TEXT NOT NULL,
  last_active_at     TEXT NOT NULL,
  channel_id         TEXT,
  schedule           TEXT,
  runtime_session_id TEXT,
  docker_enabled     INTEGER NOT NULL DEFAULT 0 CHECK (docker_enabled IN (0, 1)),
  operation          TEXT NOT NULL DEFAULT 'autonomous',
  name               TEXT,
  parent_session_id  TEXT,
  base_job_id        TEXT,
  base_seq           INTEGER,
  imported_from      TEXT,
  cost_microusd      INTEGER NOT NULL DEFAULT 0 CHECK (cost_microusd >= 0),
  job_count          INTEGER NOT NULL DEFAULT 0,
  turn_count         INTEGER NOT NULL DEFAULT 0,
  message_count      INTEGER NOT NULL DEFAULT 0,
  token_estimate     INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The sessions a job could join, by key. NULL is never equal to NULL in an index, so absent parts of the
-- key count as ''. Not unique: after a change of runtime or directory the key's old session may still be
-- active while its new one begins; the newest is the current one.
CREATE INDEX sessions_current
  ON sessions (agent, mode, coalesce(channel_id, ''), coalesce(schedule, ''), number)
  WHERE mode <> 'fresh_per_job' AND status NOT IN ('completed', 'expired');

CREATE TABLE jobs (
  number             INTEGER PRIMARY KEY,
  id                 TEXT NOT NULL UNIQUE,
  agent              TEXT NOT NULL,
  trigger_type       TEXT NOT NULL CHECK (trigger_type IN (
    'manual', 'schedule', 'webhook', 'chat', 'discord', 'slack', 'web', 'fork', 'spawned')),
  status             TEXT NOT NULL CHECK (status IN (
    'pending', 'running', 'suspended', 'completed', 'failed', 'cancelled')),
  created_at         TEXT NOT NULL,
  session_id         TEXT REFERENCES sessions (id),
  runtime_session_id TEXT,
  trigger_id         TEXT,
  schedule           TEXT,
  exit_reason        TEXT,
  suspend_reason     TEXT,
  -- Links may name a job that was imported away or archived, so they are not foreign keys.
  forked_from        TEXT,
  resumed_from       TEXT,
  parent_job_id      TEXT,
  priority           INTEGER NOT NULL DEFAULT 0,
  dedupe_key         TEXT,
  -- The last barrier against a crash loop. Fleets set their own cap (`max_restarts`, 5 unless they say
  -- otherwise) and the engine stops there; no setting and no mistake gets a job past this ceiling.
  restart_count      INTEGER NOT NULL DEFAULT 0 CHECK (restart_count BETWEEN 0 AND 100),
  not_before         TEXT,
  cancel_requested_at TEXT,
  epoch              INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  worker             TEXT,
  started_at         TEXT,
  finished_at        TEXT,
  turns              INTEGER NOT NULL DEFAULT 0,
  messages           INTEGER NOT NULL DEFAULT 0,
  input_tokens       INTEGER NOT NULL DEFAULT 0,
  output_tokens      INTEGER NOT NULL DEFAULT 0,
  cache_creation_input_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_input_tokens     INTEGER NOT NULL DEFAULT 0,
  cost_microusd      INTEGER NOT NULL DEFAULT 0 CHECK (cost_microusd >= 0),
  summary            TEXT,
  error              TEXT,
  error_code         TEXT,
  last_seq           INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX jobs_by_agent ON jobs (agent, number);
CREATE INDEX jobs_by_status ON jobs (status, number);
CREATE INDEX jobs_by_agent_and_status ON jobs (agent, status, number);
-- What waits to be taken, by agent: the most important first, the oldest first.
CREATE INDEX jobs_waiting ON jobs (agent, priority DESC, number) WHERE status = 'pending';
-- What somebody wants to end.
CREATE INDEX jobs_to_cancel ON jobs (worker) WHERE status = 'running' AND cancel_requested_at IS NOT NULL;
CREATE UNIQUE INDEX jobs_by_dedupe_key ON jobs (dedupe_key) WHERE dedupe_key IS NOT NULL;

CREATE TABLE job_texts (
  job_id      TEXT PRIMARY KEY REFERENCES jobs (id),
  prompt      TEXT NOT NULL,
  inputs      TEXT NOT NULL DEFAULT '{}',
  summary     TEXT,
  output_text TEXT
) STRICT;

CREATE TABLE executions (
  id                 TEXT PRIMARY KEY,
  job_id             TEXT NOT NULL REFERENCES jobs (id),
  epoch              INTEGER NOT NULL CHECK (epoch >= 1),
  worker             TEXT NOT NULL,
  status             TEXT NOT NULL CHECK (status IN ('started', 'finished', 'lost')),
  trigger_type       TEXT NOT NULL,
  trigger_id         TEXT NOT NULL,
  skill              TEXT NOT NULL,
  started_at         TEXT NOT NULL,
  repo               TEXT,
  issue_number       INTEGER,
  finished_at        TEXT,
  success            INTEGER CHECK (success IN (0, 1)),
  error              TEXT,
  turns              INTEGER NOT NULL DEFAULT 0,
  duration_ms        INTEGER,
  session_id         TEXT REFERENCES sessions (id),
  runtime_session_id TEXT,
  cost_microusd      INTEGER NOT NULL DEFAULT 0 CHECK (cost_microusd >= 0),
  input_tokens       INTEGER NOT NULL DEFAULT 0,
  cache_creation_input_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_input_tokens     INTEGER NOT NULL DEFAULT 0,
  output_tokens      INTEGER NOT NULL DEFAULT 0,
  api_duration_ms    INTEGER,
  stop_reason        TEXT,
  workflow_run_id    TEXT,
  UNIQUE (job_id, epoch)
) STRICT;

CREATE INDEX idx_executions_trigger ON executions (trigger_type, trigger_id);
CREATE INDEX idx_executions_skill ON executions (skill, started_at);
CREATE INDEX idx_executions_workflow_run ON executions (workflow_run_id, skill);

-- Row images of committed changes on their way to the ledger. Rows leave once the ledger holds them on
-- disk; the newest always stays, because the next change is numbered after it.
CREATE TABLE outbox (
  change INTEGER PRIMARY KEY,
  at     TEXT NOT NULL,
  kind   TEXT NOT NULL,
  rows   TEXT NOT NULL
) STRICT;
