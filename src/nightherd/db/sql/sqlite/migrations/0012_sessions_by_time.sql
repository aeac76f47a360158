-- Lists of sessions are ordered by when a session was created, as those of jobs are: an imported session is old.
DROP INDEX sessions_by_agent;
CREATE INDEX sessions_by_agent ON sessions (agent, created_at, number) WHERE removed_at IS NULL;
DROP INDEX sessions_by_status;
CREATE INDEX sessions_by_status ON sessions (status, created_at, number) WHERE removed_at IS NULL;
DROP INDEX sessions_by_mode;
CREATE INDEX sessions_by_mode ON sessions (mode, created_at, number) WHERE removed_at IS NULL;
DROP INDEX sessions_kept;
CREATE INDEX sessions_kept ON sessions (created_at, number) WHERE removed_at IS NULL;
-- Retention looks at the jobs that have checkpoints left, not at all that ever had some.
CREATE INDEX checkpoints_kept ON checkpoints (job_id) WHERE removed_at IS NULL;
