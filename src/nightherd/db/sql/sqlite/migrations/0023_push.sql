-- Devices that take pushes. What pushes are sent with is emptied when a subscription ends.

CREATE TABLE push_subscriptions (
  id         TEXT PRIMARY KEY,
  person     TEXT NOT NULL,
  status     TEXT NOT NULL CHECK (status IN ('active', 'ended')),
  inbox      INTEGER NOT NULL CHECK (inbox IN (0, 1)),
  failures   INTEGER NOT NULL CHECK (failures IN (0, 1)),
  label      TEXT NOT NULL,
  service    TEXT NOT NULL,
  endpoint   TEXT NOT NULL,
  p256dh     TEXT NOT NULL,
  auth       TEXT NOT NULL,
  public_key TEXT NOT NULL,
  token_hash TEXT,
  session_id TEXT,
  is_proxied INTEGER NOT NULL DEFAULT 0 CHECK (is_proxied IN (0, 1)),
  created_at TEXT NOT NULL,
  ended_at   TEXT,
  end_reason TEXT CHECK (end_reason IN ('removed', 'gone', 'logged_out', 'revoked', 'replaced', 'key_changed'))
) STRICT;

CREATE INDEX push_subscriptions_active ON push_subscriptions (created_at, id) WHERE status = 'active';
