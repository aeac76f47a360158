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
-- The number is the time (src/nightherd/index/texts.py). A row without a job is the name of a session.
CREATE TABLE texts (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    job INTEGER,
    seq INTEGER,
    message INTEGER,
    session_id TEXT,
    agent TEXT,
    body TEXT
) STRICT;
CREATE UNIQUE INDEX texts_of_job ON texts (job, seq) WHERE job IS NOT NULL;
CREATE UNIQUE INDEX name_of_session ON texts (session_id) WHERE job IS NULL;
CREATE VIRTUAL TABLE search USING fts5(
    body, agent, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2"
);
