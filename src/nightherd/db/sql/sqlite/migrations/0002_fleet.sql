-- What the fleet is doing: workers and their leases, agents, schedules, slots, checkpoints.

CREATE TABLE workers (
  id              TEXT PRIMARY KEY,
  status          TEXT NOT NULL CHECK (status IN ('alive', 'left', 'lost')),
  host            TEXT NOT NULL,
  pid             INTEGER NOT NULL,
  process_started TEXT NOT NULL,
  boot_id         TEXT NOT NULL,
  -- On the monotonic clock of that boot, in seconds.
  deadline        REAL NOT NULL,
  started_at      TEXT NOT NULL,
  heartbeat_at    TEXT NOT NULL,
  ended_at        TEXT
) STRICT;

-- Who could be gone: the few alive among the many that ever were.
CREATE INDEX workers_alive ON workers (id) WHERE status = 'alive';

CREATE TABLE agents (
  name            TEXT PRIMARY KEY,
  status          TEXT NOT NULL CHECK (status IN ('idle', 'running', 'error')),
  current_job     TEXT,
  last_job        TEXT,
  next_schedule   TEXT,
  next_trigger_at TEXT,
  container_id    TEXT,
  error_message   TEXT
) STRICT;

CREATE TABLE schedules (
  id                   TEXT PRIMARY KEY,
  agent                TEXT NOT NULL,
  name                 TEXT NOT NULL,
  status               TEXT NOT NULL CHECK (status IN ('idle', 'running', 'disabled')),
  last_run_at          TEXT,
  next_run_at          TEXT,
  last_error           TEXT,
  consecutive_failures INTEGER NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0)
) STRICT;

CREATE INDEX schedules_by_agent ON schedules (agent, name);

-- One row per due instant, ever: the key is what makes it fire once.
CREATE TABLE slots (
  id          TEXT PRIMARY KEY,
  schedule_id TEXT NOT NULL REFERENCES schedules (id) DEFERRABLE INITIALLY DEFERRED,
  due_at      TEXT NOT NULL,
  outcome     TEXT NOT NULL CHECK (outcome IN ('job', 'skipped')),
  decided_at  TEXT NOT NULL,
  job_id      TEXT REFERENCES jobs (id),
  reason      TEXT,
  CHECK ((outcome = 'job') = (job_id IS NOT NULL))
) STRICT;

CREATE INDEX slots_by_schedule ON slots (schedule_id, due_at);

CREATE TABLE checkpoints (
  id             TEXT PRIMARY KEY,
  job_id         TEXT NOT NULL REFERENCES jobs (id),
  number         INTEGER NOT NULL CHECK (number >= 1),
  epoch          INTEGER NOT NULL CHECK (epoch >= 1),
  seq            INTEGER NOT NULL CHECK (seq >= 0),
  trigger        TEXT NOT NULL,
  status         TEXT NOT NULL,
  created_at     TEXT NOT NULL,
  turn           INTEGER NOT NULL DEFAULT 0,
  suspend_reason TEXT,
  input_tokens   INTEGER NOT NULL DEFAULT 0,
  output_tokens  INTEGER NOT NULL DEFAULT 0,
  cost_microusd  INTEGER NOT NULL DEFAULT 0 CHECK (cost_microusd >= 0),
  duration_ms    INTEGER NOT NULL DEFAULT 0,
  header         TEXT NOT NULL DEFAULT '{}',
  UNIQUE (job_id, number)
) STRICT;

-- Sessions are also known by the id their runtime gave them.
CREATE INDEX sessions_by_runtime_id ON sessions (runtime_session_id, number) WHERE runtime_session_id IS NOT NULL;
