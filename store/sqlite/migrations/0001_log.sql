CREATE TABLE conversations (
  -- A conversation, and what a person deleted but a fork still begins with (deleted = 1).
  id            TEXT PRIMARY KEY,
  number        INTEGER NOT NULL UNIQUE,   -- places its entries; used again when nothing of the conversation is left
  project_id    TEXT NOT NULL,
  user_id       TEXT NOT NULL DEFAULT '',  -- whose it is; empty: nobody's in particular
  key           TEXT,                      -- the caller's own name, unique in the project; NULL when none
  kind          TEXT NOT NULL DEFAULT '',  -- empty: of users and models; each kind has lists of its own
  title         TEXT NOT NULL,
  active_mode   TEXT NOT NULL,
  active_agent  TEXT NOT NULL DEFAULT '',  -- empty: none
  metadata      TEXT,                      -- a JSON object
  labels        TEXT,                      -- JSON: the metadata's strings, numbers and booleans as strings, for filters; NULL when none
  parent_id     TEXT,
  fork_seq      INTEGER NOT NULL,
  lineage       TEXT,                      -- JSON list of {conversation_id, through}, oldest first; NULL when none
  created_at    TEXT NOT NULL,             -- RFC 3339, UTC, always nine digits of a second: sorts as text
  updated_at    TEXT NOT NULL,             -- where entries has some after last_seq, the time of the newest counts
  updated_second TEXT GENERATED ALWAYS AS (substr(updated_at, 1, 19)) VIRTUAL, -- also of the newest entry's time
  last_seq      INTEGER NOT NULL,          -- entries may have some after it; of a deleted conversation: up to where forks still need it
  revision      INTEGER NOT NULL DEFAULT 0, -- rises whenever stored entries change: by a redaction, or because records are put back
  deleted       INTEGER NOT NULL DEFAULT 0,
  archived_at   TEXT,                      -- NULL when it is not archived
  indexed_seq   INTEGER NOT NULL,          -- the newest of its own entries that documents has; not below fork_seq
  indexed_title TEXT,                      -- the title that documents has; NULL when none
  behind        INTEGER NOT NULL DEFAULT 1 -- 1: documents lacks the title or entries
) WITHOUT ROWID;

CREATE INDEX conversations_by_id ON conversations (id, number); -- so that entries are found without the rows above

CREATE UNIQUE INDEX conversations_by_key ON conversations (project_id, key) WHERE key IS NOT NULL;

CREATE INDEX conversations_by_change ON conversations (project_id, kind, updated_second) WHERE deleted = 0 AND archived_at IS NULL;

CREATE INDEX conversations_of_user ON conversations (project_id, user_id, kind, updated_second)
  WHERE deleted = 0 AND archived_at IS NULL AND user_id <> '';

CREATE INDEX conversations_archived ON conversations (project_id, kind, updated_second) WHERE deleted = 0 AND archived_at IS NOT NULL;

CREATE INDEX conversations_by_parent ON conversations (parent_id) WHERE parent_id IS NOT NULL AND deleted = 0;

CREATE INDEX conversations_unindexed ON conversations (project_id, id)
  WHERE behind = 1 AND deleted = 0 AND archived_at IS NULL;

CREATE TABLE lineage (
  -- Which conversations begin with entries of another one: all that Delete needs to know.
  ancestor_id     TEXT NOT NULL REFERENCES conversations (id),
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  through         INTEGER NOT NULL,      -- the last seq of the ancestor's that is used
  PRIMARY KEY (ancestor_id, conversation_id)
) WITHOUT ROWID;

CREATE TABLE entries (
  -- The log. Rows are added; only a deletion, an archiving or a redaction by a person takes or changes any. An append
  -- writes to no other table but once a second, so that it changes few pages.
  place           INTEGER PRIMARY KEY,   -- the conversation's number * 2^32 + seq
  conversation    INTEGER GENERATED ALWAYS AS (place >> 32) VIRTUAL REFERENCES conversations (number),
  seq             INTEGER GENERATED ALWAYS AS (place & 4294967295) VIRTUAL, -- from 1 without a gap; a fork's own entries begin after fork_seq
  id              TEXT NOT NULL,
  role            TEXT NOT NULL,
  hidden          INTEGER NOT NULL,      -- 1: an event for people only
  created_at      TEXT NOT NULL,
  output_ref      TEXT,                  -- alias path of a tool's whole output; NULL when none
  chars           INTEGER NOT NULL,
  tokens          INTEGER NOT NULL,
  redacted        INTEGER NOT NULL,      -- 1: a person removed what it said
  body            TEXT NOT NULL,         -- the whole entry as JSON, with all of the above in it
  checksum        INTEGER NOT NULL       -- CRC-32C of body
);

CREATE INDEX entries_of_users ON entries (place) WHERE role = 'user' AND hidden = 0;

CREATE INDEX entries_by_output_ref ON entries (conversation, output_ref, place) WHERE output_ref IS NOT NULL;

CREATE INDEX entries_redacted ON entries (place) WHERE redacted = 1;

CREATE TABLE entry_objects (
  -- Which objects entries need, also those that are archived.
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  object_id       TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, object_id, seq)
) WITHOUT ROWID;

CREATE TABLE discards (
  -- Objects that nothing names any more and that are still to be removed.
  number INTEGER PRIMARY KEY,            -- the oldest first
  name   TEXT NOT NULL UNIQUE            -- ends with a slash: all that begin with it
);

CREATE TABLE receipts (
  -- What each idempotency key has appended; and marks: how far a reader is (last_seq, and first_seq parts behind it).
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  key             TEXT NOT NULL,
  fingerprint     TEXT NOT NULL,         -- of what was asked for
  first_seq       INTEGER NOT NULL,
  last_seq        INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, key)
) WITHOUT ROWID;

CREATE TABLE prefixes (
  -- The beginnings of conversations, by what they say, so that a client's history is recognised.
  hash            BLOB NOT NULL,         -- of the project and of what the entries up to seq say, 16 bytes
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  seq             INTEGER NOT NULL,      -- of the beginning's last entry
  ids             INTEGER NOT NULL,      -- a hash of the call ids up to there
  system          INTEGER NOT NULL,      -- a hash of the system prompt
  session         INTEGER NOT NULL,      -- a hash of the client's name for its session; 0 when none
  PRIMARY KEY (hash, conversation_id, seq)
) WITHOUT ROWID;

CREATE INDEX prefixes_of_conversation ON prefixes (conversation_id, seq, hash);

CREATE TABLE blobs (
  -- Bytes under their own SHA-256 in hex.
  hash TEXT NOT NULL PRIMARY KEY,
  data BLOB NOT NULL
);

CREATE TABLE turns (
  -- A turn, who may write it, and how it ended.
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  id              TEXT NOT NULL,
  state           TEXT NOT NULL,         -- running, finished, failed; void: as if it had never been
  owner           TEXT NOT NULL,         -- the process that runs it, or that ended it
  fence           INTEGER NOT NULL,      -- of its newest lease; the running turn's is the conversation's highest
  lease_until     TEXT,                  -- NULL when it has ended, '' when the owner gave the lease back
  last_event      INTEGER NOT NULL DEFAULT 0, -- of those in turn_events; 0 when there are none
  signals         INTEGER NOT NULL DEFAULT 0, -- how many turn_signals has
  started_at      TEXT NOT NULL,
  ended_at        TEXT,                  -- NULL while it runs
  request         TEXT NOT NULL,         -- JSON: what it was started with
  ended           TEXT,                  -- JSON: how it ended; NULL while it runs
  PRIMARY KEY (conversation_id, id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX turns_running ON turns (conversation_id) WHERE state = 'running';

CREATE UNIQUE INDEX turns_by_fence ON turns (conversation_id, fence);

CREATE INDEX turns_by_start ON turns (conversation_id, started_at, id) WHERE state <> 'void';

CREATE INDEX turns_by_lease ON turns (lease_until) WHERE state = 'running';

CREATE INDEX turns_to_prune ON turns (ended_at) WHERE ended_at IS NOT NULL AND last_event + signals > 0;

CREATE TABLE turn_events (
  -- The steps of turns for readers who come later: a row for each time that some were written.
  conversation_id TEXT NOT NULL,
  turn_id         TEXT NOT NULL,
  last_id         INTEGER NOT NULL,      -- of the row's events
  body            TEXT NOT NULL,         -- JSON list of ids and data in turn
  PRIMARY KEY (conversation_id, turn_id, last_id),
  FOREIGN KEY (conversation_id, turn_id) REFERENCES turns (conversation_id, id)
) WITHOUT ROWID;

CREATE TABLE turn_signals (
  -- What the owner of a turn is told.
  conversation_id TEXT NOT NULL,
  turn_id         TEXT NOT NULL,
  number          INTEGER NOT NULL,      -- of the turn's signals, from 1
  body            TEXT NOT NULL,         -- JSON
  PRIMARY KEY (conversation_id, turn_id, number),
  FOREIGN KEY (conversation_id, turn_id) REFERENCES turns (conversation_id, id)
) WITHOUT ROWID;

CREATE TABLE runs (
  -- The runs of workflows as the events on their entries have them: an index, made anew from the entries.
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  id              TEXT NOT NULL,
  project_id      TEXT NOT NULL,         -- the conversation's
  workflow_id     TEXT NOT NULL,
  key_id          TEXT NOT NULL,         -- the API key that it is charged to; '' for none
  state           TEXT NOT NULL,         -- running, waiting, failed, stopped; over: finished, cancelled
  first_seq       INTEGER NOT NULL,      -- of the entry that the run began with
  started_at      TEXT NOT NULL,
  updated_at      TEXT NOT NULL,         -- of its newest event
  ended_at        TEXT,                  -- NULL while it may go on
  PRIMARY KEY (conversation_id, id)
) WITHOUT ROWID;

CREATE INDEX runs_by_id ON runs (project_id, id);

CREATE INDEX runs_by_start ON runs (project_id, started_at, id);

CREATE INDEX runs_of_conversation ON runs (conversation_id, started_at, id);

CREATE INDEX runs_running ON runs (updated_at, conversation_id, id) WHERE state = 'running';

CREATE TABLE usage (
  -- The requests that a conversation's own entries answer, counted by day and model.
  conversation_id    TEXT NOT NULL,
  day                TEXT NOT NULL,      -- of the answers, in UTC
  model              TEXT NOT NULL,
  requests           INTEGER NOT NULL,
  input_tokens       INTEGER NOT NULL,   -- with the cached ones
  cached_tokens      INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens      INTEGER NOT NULL,
  last_seq           INTEGER NOT NULL,   -- of the newest answer
  shares             TEXT NOT NULL,      -- of the newest requests: cached tokens in per cent, three characters each
  cost_nano          INTEGER NOT NULL,   -- of those with a price, in billionths of a US dollar
  priced             INTEGER NOT NULL,   -- how many requests have one
  PRIMARY KEY (conversation_id, day, model)
) WITHOUT ROWID;

CREATE TABLE spending (
  -- What requests to models used and cost. No deletion takes any: the rows have no words.
  project_id         TEXT NOT NULL,
  key_id             TEXT NOT NULL,      -- of the caller; empty: none
  day                TEXT NOT NULL,      -- of the answers, in UTC
  user_id            TEXT NOT NULL,      -- of the conversation; empty: none
  provider           TEXT NOT NULL,
  model              TEXT NOT NULL,
  requests           INTEGER NOT NULL,
  input_tokens       INTEGER NOT NULL,   -- with the cached ones
  cached_tokens      INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens      INTEGER NOT NULL,   -- with the reasoning ones
  reasoning_tokens   INTEGER NOT NULL,
  cost_nano          INTEGER NOT NULL,   -- of those with a price, in billionths of a US dollar
  priced             INTEGER NOT NULL,   -- how many requests have one
  PRIMARY KEY (project_id, key_id, day, user_id, provider, model)
) WITHOUT ROWID;

CREATE INDEX spending_by_day ON spending (project_id, day);

CREATE INDEX spending_of_user ON spending (project_id, user_id, day) WHERE user_id <> '';

CREATE TABLE finished_turns (
  -- The turns that ended, in the order of their commits; they have no words, and stay when conversations are deleted.
  position        INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again
  project_id      TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  turn_id         TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  key_id          TEXT NOT NULL,
  state           TEXT NOT NULL,         -- finished, failed
  ended_at        TEXT NOT NULL,
  ended           TEXT NOT NULL          -- JSON: how it ended, as turns has it
);

CREATE INDEX finished_turns_of_project ON finished_turns (project_id, position);

CREATE TABLE feed_pruned (
  -- The newest turn of a user that was removed from finished_turns: a reader that is before it has missed some.
  project_id TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  position   INTEGER NOT NULL,
  PRIMARY KEY (project_id, user_id)
) WITHOUT ROWID;

CREATE TABLE feed_positions (
  -- Up to where receivers have accepted the turns that ended.
  name     TEXT PRIMARY KEY,
  position INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE documents (
  -- The index of words; it runs behind the log.
  place           INTEGER PRIMARY KEY,   -- when it was added, as Unix nanoseconds, or the next that was free
  conversation_id TEXT REFERENCES conversations (id), -- NULL: it was removed, and its words are about to be
  seq             INTEGER NOT NULL,      -- 0: the conversation's title
  terms           TEXT NOT NULL,         -- parted by spaces, with one for the conversation and one for the project
  UNIQUE (conversation_id, seq)
);

CREATE INDEX documents_by_place ON documents (place, conversation_id, seq); -- without the terms: many fit into a page

CREATE VIRTUAL TABLE words USING fts5 (
  terms, content = 'documents', content_rowid = 'place', detail = none, columnsize = 0, prefix = '1 2', tokenize = "ascii tokenchars '_'"
);

CREATE VIRTUAL TABLE terms_of_words USING fts5vocab (words, row); -- the terms of the index, from the index itself

INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

CREATE TABLE vectors (
  -- Embeddings of entries that documents has; empty unless the settings name a model for them.
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  seq             INTEGER NOT NULL,
  vector          BLOB NOT NULL,         -- a signed byte for each dimension
  UNIQUE (conversation_id, seq)
);

CREATE TABLE embedded (
  -- How far vectors has a conversation's own entries.
  conversation_id TEXT PRIMARY KEY REFERENCES conversations (id),
  model           TEXT NOT NULL,         -- that made them, with its dimensions
  seq             INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE projects (
  id         TEXT PRIMARY KEY,
  created_at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE api_keys (
  id         TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  user_id    TEXT NOT NULL,              -- whose conversations it may reach; empty: all of the project
  name       TEXT NOT NULL,
  hash       TEXT NOT NULL,              -- SHA-256 of the secret, in hex
  created_at TEXT NOT NULL,
  expires_at TEXT,                       -- NULL: never
  revoked_at TEXT,                       -- NULL: not revoked
  budget     TEXT                        -- JSON: what requests to models may use in a period; NULL: no bound
) WITHOUT ROWID;

CREATE INDEX api_keys_by_age ON api_keys (project_id, created_at, id);

CREATE TABLE sessions (
  -- What keys opened for browsers.
  id         TEXT PRIMARY KEY,
  key_id     TEXT NOT NULL,
  hash       TEXT NOT NULL,              -- SHA-256 of the secret, in hex
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE audit (
  -- Who read and changed what, in the order of commits; it has no words of conversations.
  position        INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again
  at              TEXT NOT NULL,
  project_id      TEXT NOT NULL,
  key_id          TEXT NOT NULL,         -- of the caller; empty: none
  operation       TEXT NOT NULL,
  conversation_id TEXT NOT NULL,         -- empty: none, or several
  event           TEXT NOT NULL          -- JSON: the rest
);

CREATE INDEX audit_of_project ON audit (project_id, position);

CREATE INDEX audit_of_conversation ON audit (conversation_id, position) WHERE conversation_id <> '';

CREATE INDEX audit_by_time ON audit (at);

CREATE TABLE leases (                    -- of what only one process does at a time, but for turns
  name     TEXT PRIMARY KEY,
  owner    TEXT NOT NULL,                -- '' when it was given back
  fence    INTEGER NOT NULL,             -- how many owners it has had
  renewals INTEGER NOT NULL DEFAULT 0    -- how often one renewed it
) WITHOUT ROWID;
