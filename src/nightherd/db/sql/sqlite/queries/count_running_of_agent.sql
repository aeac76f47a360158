-- How many of the agent's jobs run.
SELECT count(*) FROM jobs WHERE agent = ?1 AND status = 'running';
