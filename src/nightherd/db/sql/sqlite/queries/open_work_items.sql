-- Issues that are taken and not settled, the first taken first.
SELECT * FROM work_items WHERE status IN ('reserved', 'held', 'working', 'settling') ORDER BY reserved_at, id;
