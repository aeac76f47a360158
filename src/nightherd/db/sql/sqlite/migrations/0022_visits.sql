-- When each person last looked at the dashboard, and what ended since then.

CREATE TABLE visits (
  person     TEXT PRIMARY KEY,
  began_at   TEXT NOT NULL,
  seen_at    TEXT NOT NULL,
  visited_at TEXT
) STRICT;

-- Jobs and runs by when they ended, without those that are part of another one: counting reads the index alone,
-- for which it has to have those columns too.
CREATE INDEX jobs_by_end ON jobs (status, finished_at, number, parent_job_id, workflow_run_id)
  WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND workflow_run_id IS NULL;
CREATE INDEX workflow_runs_by_end ON workflow_runs (status, finished_at, number, parent_run_id)
  WHERE finished_at IS NOT NULL AND parent_run_id IS NULL;
