-- How many jobs run, all agents together.
SELECT count(*) FROM jobs WHERE status = 'running';
