-- Jobs of a session run in the order in which they were submitted: those that have not ended, in that order.
CREATE INDEX jobs_open_in_session ON jobs (session_id, number)
  WHERE session_id IS NOT NULL AND status IN ('pending', 'running', 'suspended');
