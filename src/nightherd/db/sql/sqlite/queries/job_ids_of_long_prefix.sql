-- Ids in [?1, ?2), newest first: few match, so they are found by id and sorted.
SELECT id FROM jobs WHERE id >= ?1 AND id < ?2 ORDER BY +created_at DESC, +number DESC LIMIT ?3;
