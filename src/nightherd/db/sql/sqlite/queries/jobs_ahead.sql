-- The jobs of a session below a number that have not ended, in the order in which they were submitted.
SELECT * FROM jobs
WHERE session_id = ?1 AND number < ?2 AND status IN ('pending', 'running', 'suspended')
ORDER BY number
LIMIT ?3;
