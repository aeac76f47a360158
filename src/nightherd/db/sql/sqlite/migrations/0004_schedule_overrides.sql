-- Schedules that keep to their instants over restarts, and what somebody set about them beside the fleet file.

-- The instant that names the next slot (next_run_at without the jitter), and the rule it is an instant of.
ALTER TABLE schedules ADD COLUMN next_due_at TEXT;
ALTER TABLE schedules ADD COLUMN rule TEXT NOT NULL DEFAULT '';
ALTER TABLE schedules ADD COLUMN pause_after INTEGER NOT NULL DEFAULT 5 CHECK (pause_after >= 0);

CREATE TABLE schedule_overrides (
  id         TEXT PRIMARY KEY,
  updated_at TEXT NOT NULL,
  -- NULL: as declared. A row with both NULL overrides nothing; it says who took the override away.
  enabled    INTEGER CHECK (enabled IN (0, 1)),
  schedule   TEXT,
  updated_by TEXT
) STRICT;

-- A schedule's jobs that have not ended.
CREATE INDEX jobs_of_schedule ON jobs (agent, schedule, number)
  WHERE schedule IS NOT NULL AND status IN ('pending', 'running', 'suspended');
