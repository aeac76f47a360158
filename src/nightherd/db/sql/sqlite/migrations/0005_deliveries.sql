-- What came in by webhooks: the inbox that makes a delivery take effect once, however often it is sent.

CREATE TABLE deliveries (
  id          TEXT PRIMARY KEY,
  endpoint    TEXT NOT NULL,
  delivery_id TEXT NOT NULL,
  received_at TEXT NOT NULL,
  outcome     TEXT NOT NULL CHECK (outcome IN ('job', 'ignored')),
  event       TEXT,
  size        INTEGER NOT NULL DEFAULT 0,
  sha256      TEXT NOT NULL DEFAULT '',
  job_id      TEXT REFERENCES jobs (id),
  reason      TEXT,
  CHECK ((outcome = 'job') = (job_id IS NOT NULL))
) STRICT;

CREATE INDEX deliveries_by_endpoint ON deliveries (endpoint, received_at);
