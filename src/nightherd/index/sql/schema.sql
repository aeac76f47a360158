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
    -- Of the first job of its family, where it has none of its own: AGENT/NAME, and a workflow run.
    schedule TEXT,
    run_id TEXT,
    -- The other agents whose jobs it works for, as JSON; NULL for none.
    above TEXT,
    seq INTEGER NOT NULL DEFAULT 0,
    noted INTEGER NOT NULL DEFAULT 0,
    looked INTEGER NOT NULL DEFAULT 0,
    is_live INTEGER NOT NULL DEFAULT 0,
    problem TEXT,
    -- What its row says that it used, and what a fold of its costs continues from.
    totals BLOB,
    costs BLOB,
    -- The largest comes last: what lists and sums read stands before it.
    outline BLOB
) STRICT;
CREATE INDEX due_jobs ON jobs (noted) WHERE noted > looked OR is_live;
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    workflow TEXT NOT NULL,
    schedule TEXT
) STRICT, WITHOUT ROWID;
-- What a job used in a quarter of an hour with a model ('' for none on record); the key is the order of time.
CREATE TABLE costs (
    quarter INTEGER NOT NULL,
    job INTEGER NOT NULL,
    model TEXT NOT NULL,
    cost_microusd INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_creation_input_tokens INTEGER NOT NULL,
    cache_read_input_tokens INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    PRIMARY KEY (quarter, job, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX costs_of_job ON costs (job);
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
