-- Every override that says anything.
SELECT * FROM schedule_overrides WHERE enabled IS NOT NULL OR schedule IS NOT NULL ORDER BY id;
