-- How every source is doing.
SELECT * FROM work_sources ORDER BY id;
