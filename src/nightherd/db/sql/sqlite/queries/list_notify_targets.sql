-- Every target that was ever declared, by name.
SELECT * FROM notify_targets ORDER BY id;
