-- What was used on which day, by which agent and for which schedule; what running jobs have set aside for
-- their next turn; jobs that were made by jobs; checkpoints that are gone.

-- One row for each day (UTC), agent and schedule ('' for none): sums never go through jobs.
CREATE TABLE spending (
  id            TEXT PRIMARY KEY,
  day           TEXT NOT NULL,
  agent         TEXT NOT NULL,
  schedule      TEXT NOT NULL DEFAULT '',
  cost_microusd INTEGER NOT NULL DEFAULT 0,
  tokens        INTEGER NOT NULL DEFAULT 0,
  turns         INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX spending_by_day ON spending (day, agent, schedule, cost_microusd, tokens, turns);

-- The worst case of what a running job does next, until it is known.
CREATE TABLE reservations (
  job_id        TEXT PRIMARY KEY REFERENCES jobs (id),
  agent         TEXT NOT NULL,
  schedule      TEXT NOT NULL DEFAULT '',
  cost_microusd INTEGER NOT NULL DEFAULT 0 CHECK (cost_microusd >= 0),
  tokens        INTEGER NOT NULL DEFAULT 0 CHECK (tokens >= 0)
) STRICT;

-- Nearly all of them are empty, and sums look only at those that are not.
CREATE INDEX reservations_held ON reservations (agent, schedule, cost_microusd, tokens)
  WHERE cost_microusd > 0 OR tokens > 0;

CREATE INDEX jobs_by_parent ON jobs (parent_job_id, number) WHERE parent_job_id IS NOT NULL;

-- Taken away; the row stays.
ALTER TABLE checkpoints ADD COLUMN removed_at TEXT;
