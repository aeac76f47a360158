-- Sessions that are chosen, forked, named, expire and are cleaned up; jobs that wait for a time; what a job
-- changes about its agent.

-- Which of a key's sessions is the current one: the one with the highest rank, which is its number unless it
-- was chosen (a higher one) or was never offered (-1: a fork).
ALTER TABLE sessions ADD COLUMN rank INTEGER NOT NULL DEFAULT 0 CHECK (rank >= -1);
-- How many messages and turns it began with, for a fork.
ALTER TABLE sessions ADD COLUMN base_messages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN base_turns INTEGER NOT NULL DEFAULT 0;
-- How old it may grow, and how long it may go unused, in seconds.
ALTER TABLE sessions ADD COLUMN max_age_s REAL;
ALTER TABLE sessions ADD COLUMN max_idle_s REAL;
-- Cleaned up: the row stays, as everything does; lists leave it out.
ALTER TABLE sessions ADD COLUMN removed_at TEXT;

DROP INDEX sessions_current;
CREATE INDEX sessions_current
  ON sessions (agent, mode, coalesce(channel_id, ''), coalesce(schedule, ''),
               coalesce(nullif(rank, 0), number))
  WHERE mode <> 'fresh_per_job' AND status NOT IN ('completed', 'expired') AND rank >= 0;
CREATE INDEX sessions_by_agent ON sessions (agent, number) WHERE removed_at IS NULL;
CREATE INDEX sessions_by_status ON sessions (status, number) WHERE removed_at IS NULL;
CREATE INDEX sessions_by_mode ON sessions (mode, number) WHERE removed_at IS NULL;
CREATE INDEX sessions_kept ON sessions (number) WHERE removed_at IS NULL;
CREATE INDEX sessions_by_parent ON sessions (parent_session_id, number) WHERE parent_session_id IS NOT NULL;
CREATE INDEX sessions_used ON sessions (last_active_at)
  WHERE removed_at IS NULL AND status IN ('created', 'paused');

-- What was said in a session, job by job.
CREATE INDEX jobs_by_session ON jobs (session_id, number) WHERE session_id IS NOT NULL;
-- What goes on by itself at a time.
CREATE INDEX jobs_to_wake ON jobs (not_before) WHERE status = 'suspended' AND not_before IS NOT NULL;

-- What this job has other than its agent: model, limits, times.
ALTER TABLE job_texts ADD COLUMN overrides TEXT NOT NULL DEFAULT '{}';
-- Why it did not go on in the session it would have had.
ALTER TABLE job_texts ADD COLUMN session_note TEXT;
