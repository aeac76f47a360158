-- People who talk to agents: conversations, what was said, turns that answer, and posts on their way.
-- Lists read no texts.

CREATE TABLE chat_bots (
  id                 TEXT PRIMARY KEY,
  agent              TEXT NOT NULL,
  platform           TEXT NOT NULL CHECK (platform IN ('slack', 'discord', 'terminal')),
  status             TEXT NOT NULL CHECK (status IN
    ('starting', 'connected', 'disconnected', 'refused', 'unavailable', 'stopped')),
  changed_at         TEXT NOT NULL,
  name               TEXT,
  error              TEXT,
  connected_at       TEXT,
  first_connected_at TEXT
) STRICT;

CREATE TABLE chat_conversations (
  id                TEXT PRIMARY KEY,
  bot               TEXT NOT NULL,
  agent             TEXT NOT NULL,
  platform          TEXT NOT NULL CHECK (platform IN ('slack', 'discord', 'terminal')),
  channel_id        TEXT NOT NULL,
  created_at        TEXT NOT NULL,
  last_activity_at  TEXT NOT NULL,
  thread_id         TEXT,
  guild_id          TEXT,
  parent_channel_id TEXT,
  is_direct         INTEGER NOT NULL DEFAULT 0 CHECK (is_direct IN (0, 1)),
  seen_message_id   TEXT,
  turn_job_id       TEXT REFERENCES jobs (id),
  session_id        TEXT,
  turn_count        INTEGER NOT NULL DEFAULT 0,
  number            INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX chat_conversations_by_number ON chat_conversations (number);
CREATE INDEX chat_conversations_of_bot ON chat_conversations (bot, number);
CREATE INDEX chat_conversations_by_activity ON chat_conversations (bot, last_activity_at);
CREATE INDEX chat_conversations_answering ON chat_conversations (bot, number) WHERE turn_job_id IS NOT NULL;

CREATE TABLE messaging_sessions (
  id               TEXT PRIMARY KEY,
  platform         TEXT NOT NULL,
  channel_id       TEXT NOT NULL,
  thread_id        TEXT,
  user_id          TEXT NOT NULL,
  agent_session_id TEXT,
  created_at       TEXT NOT NULL,
  last_activity_at TEXT NOT NULL,
  message_count    INTEGER NOT NULL DEFAULT 0,
  active           INTEGER NOT NULL DEFAULT 1 CHECK (active IN (0, 1)),
  agent            TEXT NOT NULL,
  conversation_id  TEXT NOT NULL REFERENCES chat_conversations (id),
  user_name        TEXT NOT NULL DEFAULT '',
  ended_at         TEXT
) STRICT;

CREATE INDEX idx_msg_sessions_lookup ON messaging_sessions (platform, channel_id, thread_id, user_id);
-- Several bots may share a channel, and NULL is a thread like any other: a plain index takes no two NULLs as the same.
CREATE UNIQUE INDEX idx_msg_sessions_unique_active
  ON messaging_sessions (agent, platform, channel_id, ifnull(thread_id, ''), user_id) WHERE active = 1;
CREATE INDEX messaging_sessions_of_conversation ON messaging_sessions (conversation_id, created_at, id) WHERE active = 1;
CREATE INDEX messaging_sessions_quiet ON messaging_sessions (agent, last_activity_at) WHERE active = 1;

CREATE TABLE chat_messages (
  id                  TEXT PRIMARY KEY,
  conversation_id     TEXT NOT NULL REFERENCES chat_conversations (id),
  bot                 TEXT NOT NULL,
  session_id          TEXT NOT NULL REFERENCES messaging_sessions (id),
  status              TEXT NOT NULL CHECK (status IN ('waiting', 'taken', 'dropped')),
  platform_message_id TEXT NOT NULL,
  user_id             TEXT NOT NULL,
  user_name           TEXT NOT NULL,
  sent_at             TEXT NOT NULL,
  received_at         TEXT NOT NULL,
  is_mention          INTEGER NOT NULL DEFAULT 0 CHECK (is_mention IN (0, 1)),
  job_id              TEXT REFERENCES jobs (id),
  reason              TEXT,
  files               INTEGER NOT NULL DEFAULT 0,
  removed_at          TEXT,
  number              INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX chat_messages_by_number ON chat_messages (number);
CREATE INDEX chat_messages_of_conversation ON chat_messages (conversation_id, number);
CREATE INDEX chat_messages_waiting ON chat_messages (conversation_id, number) WHERE status = 'waiting';
CREATE INDEX chat_messages_unanswered ON chat_messages (bot, conversation_id) WHERE status = 'waiting';
CREATE INDEX chat_messages_of_user ON chat_messages (bot, user_id, received_at);
CREATE INDEX chat_messages_of_job ON chat_messages (job_id, number) WHERE job_id IS NOT NULL;
CREATE INDEX chat_messages_of_session ON chat_messages (session_id, number);
CREATE INDEX chat_messages_kept ON chat_messages (received_at) WHERE removed_at IS NULL AND status <> 'waiting';

CREATE TABLE chat_message_texts (
  message_id TEXT PRIMARY KEY REFERENCES chat_messages (id),
  text       TEXT NOT NULL,
  details    TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE TABLE chat_turns (
  job_id           TEXT PRIMARY KEY REFERENCES jobs (id),
  conversation_id  TEXT NOT NULL REFERENCES chat_conversations (id),
  bot              TEXT NOT NULL,
  session_id       TEXT NOT NULL REFERENCES messaging_sessions (id),
  status           TEXT NOT NULL CHECK (status IN ('running', 'answered', 'failed', 'cancelled')),
  started_at       TEXT NOT NULL,
  message_count    INTEGER NOT NULL,
  reply_to         TEXT,
  agent_session_id TEXT,
  seq              INTEGER NOT NULL DEFAULT 0,
  notice           TEXT,
  ended_at         TEXT,
  number           INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX chat_turns_by_number ON chat_turns (number);
CREATE INDEX chat_turns_of_conversation ON chat_turns (conversation_id, number);

CREATE TABLE chat_posts (
  id              TEXT PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES chat_conversations (id),
  bot             TEXT NOT NULL,
  kind            TEXT NOT NULL CHECK (kind IN
    ('answer', 'tool', 'summary', 'notice', 'error', 'item', 'file')),
  status          TEXT NOT NULL CHECK (status IN ('pending', 'sending', 'sent', 'failed', 'dropped')),
  nonce           TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  due_at          TEXT NOT NULL,
  job_id          TEXT,
  item_id         TEXT,
  reply_to        TEXT,
  message_id      TEXT,
  version         INTEGER NOT NULL DEFAULT 1,
  sent_version    INTEGER NOT NULL DEFAULT 0,
  is_uncertain    INTEGER NOT NULL DEFAULT 0 CHECK (is_uncertain IN (0, 1)),
  attempts        INTEGER NOT NULL DEFAULT 0,
  wanted_at       TEXT NOT NULL,
  claimed_by      TEXT,
  sent_at         TEXT,
  last_error      TEXT,
  removed_at      TEXT,
  number          INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX chat_posts_by_number ON chat_posts (number);
CREATE INDEX chat_posts_of_conversation ON chat_posts (conversation_id, number);
CREATE INDEX chat_posts_open ON chat_posts (conversation_id, number) WHERE status IN ('pending', 'sending');
CREATE INDEX chat_posts_unsent ON chat_posts (bot, conversation_id) WHERE status IN ('pending', 'sending');
CREATE INDEX chat_posts_of_job ON chat_posts (job_id, number) WHERE job_id IS NOT NULL;
CREATE INDEX chat_posts_of_item ON chat_posts (item_id, number) WHERE item_id IS NOT NULL;
CREATE INDEX chat_posts_of_message ON chat_posts (conversation_id, message_id, number) WHERE message_id IS NOT NULL;
CREATE INDEX chat_posts_failed ON chat_posts (bot, number) WHERE status = 'failed';
CREATE INDEX chat_posts_kept ON chat_posts (created_at) WHERE removed_at IS NULL AND status IN ('sent', 'failed', 'dropped');

CREATE TABLE chat_post_texts (
  post_id TEXT PRIMARY KEY REFERENCES chat_posts (id),
  text    TEXT NOT NULL,
  details TEXT NOT NULL DEFAULT '{}'
) STRICT;

-- What was said, in one list. Ids are even for people's messages and odd for answers, so that none is used twice.
CREATE VIEW messaging_messages AS
  SELECT m.number * 2 AS id, m.session_id, 'user' AS role, t.text AS content, m.sent_at AS timestamp,
         m.platform_message_id
    FROM chat_messages AS m JOIN chat_message_texts AS t ON t.message_id = m.id
  UNION ALL
  SELECT p.number * 2 + 1, u.session_id, 'assistant', t.text, coalesce(p.sent_at, p.created_at), p.message_id
    FROM chat_posts AS p
    JOIN chat_turns AS u ON u.job_id = p.job_id
    JOIN chat_post_texts AS t ON t.post_id = p.id
   WHERE p.kind = 'answer';
