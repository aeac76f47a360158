-- Lists are ordered by when a job was created, not by when its row was written: an imported job is old.
CREATE INDEX jobs_by_time ON jobs (created_at, number);
DROP INDEX jobs_by_agent;
CREATE INDEX jobs_by_agent ON jobs (agent, created_at, number);
DROP INDEX jobs_by_status;
CREATE INDEX jobs_by_status ON jobs (status, created_at, number);
DROP INDEX jobs_by_agent_and_status;
CREATE INDEX jobs_by_agent_and_status ON jobs (agent, status, created_at, number);
