-- How many migrations this database has had; 0 for a new one.
PRAGMA user_version;
