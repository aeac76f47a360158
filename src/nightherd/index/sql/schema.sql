-- How far the change feed was followed.
CREATE TABLE follow (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    change INTEGER NOT NULL
) STRICT;
INSERT INTO follow VALUES (1, 0);
-- A job is due while `noted`, the last change of it, is beyond `looked`; one that runs is looked at again and again.
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL DEFAULT '',
    session_id TEXT,
    seq INTEGER NOT NULL DEFAULT 0,
    outline BLOB,
    noted INTEGER NOT NULL DEFAULT 0,
    looked INTEGER NOT NULL DEFAULT 0,
    is_live INTEGER NOT NULL DEFAULT 0,
    problem TEXT
) STRICT;
CREATE INDEX due_jobs ON jobs (noted) WHERE noted > looked OR is_live;
