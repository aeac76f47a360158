-- A worker's running jobs that somebody wants to end.
SELECT id FROM jobs WHERE worker = ?1 AND status = 'running' AND cancel_requested_at IS NOT NULL;
