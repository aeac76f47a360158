-- Newest first, after the job that the cursor names; a cursor that names none is before them all.
SELECT * FROM jobs
WHERE (created_at, number) < (coalesce((SELECT created_at FROM jobs WHERE number = ?1), '~'), ?1)
ORDER BY created_at DESC, number DESC
LIMIT ?2;
