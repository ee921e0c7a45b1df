-- The schema of a Continuo database (PostgreSQL), version 2: all of store/postgres/migrations.
-- Made by the tests of store/postgres; rewrite it with: go test ./store/postgres -run Schema -update

CREATE SCHEMA IF NOT EXISTS continuo;

CREATE TABLE continuo.schema_version (
  version    int NOT NULL, -- the last migration
  partitions int NOT NULL  -- of each table that is divided; 0: none is
);

-- Times are text, RFC 3339 in UTC with always nine digits of a second, so that they keep their nanoseconds
-- and sort as text; but lease_until, which is the database's own clock. A table whose last line says
-- "by COLUMN" can be partitioned by that column, and every hot statement names it.

CREATE TABLE continuo.conversations (
  -- A conversation, and what a person deleted but a fork still begins with (deleted).
  id            text COLLATE "C" PRIMARY KEY,
  project_id    text COLLATE "C" NOT NULL,
  user_id       text COLLATE "C" NOT NULL DEFAULT '', -- whose it is; empty: nobody's in particular
  key           text COLLATE "C",          -- the caller's own name; unique by conversation_keys
  kind          text COLLATE "C" NOT NULL DEFAULT '', -- empty: of users and models; each kind has lists of its own
  title         text NOT NULL,
  active_mode   text NOT NULL,
  active_agent  text NOT NULL DEFAULT '',  -- empty: none
  metadata      text,                      -- a JSON object, as it came
  labels        jsonb,                     -- the metadata's strings, numbers and booleans as strings, for filters; NULL when none
  parent_id     text COLLATE "C",
  fork_seq      bigint NOT NULL,
  lineage       text,                      -- JSON list of {conversation_id, through}, oldest first; NULL when none
  created_at    text COLLATE "C" NOT NULL,
  updated_at    text COLLATE "C" NOT NULL,
  last_seq      bigint NOT NULL,           -- of a deleted conversation: up to where forks still need it
  revision      bigint NOT NULL DEFAULT 0, -- rises whenever stored entries change: by a redaction, or because records are put back
  deleted       boolean NOT NULL DEFAULT false,
  archived_at   text COLLATE "C",          -- NULL when it is not archived
  indexed_seq   bigint NOT NULL,           -- the newest of its own entries that documents has; not below fork_seq
  indexed_title text,                      -- the title that documents has
  -- These change less often than each append does. Indexes have them in its place, so that most appends
  -- write to no index of this table (heap-only tuples), which costs half as much.
  updated_second text COLLATE "C" GENERATED ALWAYS AS (left(updated_at, 19)) STORED,
  behind        boolean GENERATED ALWAYS AS (indexed_seq < last_seq OR indexed_title IS DISTINCT FROM title) STORED -- documents lacks something
); -- by id

CREATE INDEX conversations_by_change ON continuo.conversations (project_id, kind, updated_second) WHERE NOT deleted AND archived_at IS NULL;

CREATE INDEX conversations_of_user ON continuo.conversations (project_id, user_id, kind, updated_second)
  WHERE user_id <> '' AND NOT deleted AND archived_at IS NULL;

CREATE INDEX conversations_by_label ON continuo.conversations USING gin (labels jsonb_path_ops) WHERE labels IS NOT NULL AND NOT deleted;

CREATE INDEX conversations_archived ON continuo.conversations (project_id, kind, updated_second) WHERE NOT deleted AND archived_at IS NOT NULL;

CREATE INDEX conversations_by_parent ON continuo.conversations (parent_id) WHERE parent_id IS NOT NULL AND NOT deleted;

CREATE INDEX conversations_unindexed ON continuo.conversations (project_id, id) WHERE behind AND NOT deleted AND archived_at IS NULL;

CREATE TABLE continuo.conversation_keys (
  -- The callers' own names.
  project_id      text COLLATE "C" NOT NULL,
  key             text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (project_id, key)
); -- by key

CREATE TABLE continuo.lineage (
  -- Which conversations begin with entries of another one: all that a deletion needs to know.
  ancestor_id     text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C" NOT NULL,
  through         bigint NOT NULL,         -- the last seq of the ancestor's that is used
  PRIMARY KEY (ancestor_id, conversation_id)
); -- by ancestor_id

CREATE TABLE continuo.entries (
  -- The log. Rows are added; only a deletion, an archiving or a redaction by a person takes or changes any.
  conversation_id text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,         -- from 1 without a gap; a fork's own entries begin after fork_seq
  id              text COLLATE "C" NOT NULL,
  role            text NOT NULL,
  hidden          boolean NOT NULL,        -- an event for people only
  created_at      text COLLATE "C" NOT NULL,
  output_ref      text COLLATE "C",        -- alias path of a tool's whole output; NULL when none
  chars           bigint NOT NULL,
  tokens          bigint NOT NULL,
  redacted        boolean NOT NULL DEFAULT false, -- a person removed what it said; documents has nothing of it
  body            text NOT NULL,           -- the whole entry as JSON, with all of the above in it
  checksum        bigint NOT NULL,         -- CRC-32C of body
  PRIMARY KEY (conversation_id, seq)
); -- by conversation_id

CREATE INDEX entries_of_users ON continuo.entries (conversation_id, seq) WHERE role = 'user' AND NOT hidden;

CREATE INDEX entries_by_output_ref ON continuo.entries (conversation_id, output_ref, seq) WHERE output_ref IS NOT NULL;

CREATE INDEX entries_redacted ON continuo.entries (conversation_id, seq) WHERE redacted;

CREATE TABLE continuo.entry_objects (
  -- Which objects an entry needs, also one that is archived.
  conversation_id text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,
  object_id       text COLLATE "C" NOT NULL,
  PRIMARY KEY (conversation_id, seq, object_id)
); -- by conversation_id

CREATE TABLE continuo.discards (
  -- Objects that nothing names any more and that are still to be removed.
  name   text COLLATE "C" PRIMARY KEY,     -- ends with a slash: all that begin with it
  number bigint GENERATED ALWAYS AS IDENTITY UNIQUE -- the oldest first
);

CREATE TABLE continuo.receipts (
  -- What each idempotency key has appended; and marks: how far a reader is (last_seq, and first_seq parts behind it).
  conversation_id text COLLATE "C" NOT NULL,
  key             text COLLATE "C" NOT NULL,
  fingerprint     text NOT NULL,           -- of what was asked for
  first_seq       bigint NOT NULL,
  last_seq        bigint NOT NULL,
  PRIMARY KEY (conversation_id, key)
); -- by conversation_id

CREATE TABLE continuo.prefixes (
  -- The beginnings of conversations, by what they say, so that a client's history is recognised. It is found by hash and
  -- removed by conversation, so it is not partitioned.
  hash            bytea NOT NULL,          -- of the project and of what the entries up to seq say, 16 bytes
  conversation_id text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,         -- of the beginning's last entry
  ids             bigint NOT NULL,         -- a hash of the call ids up to there
  system          bigint NOT NULL,         -- a hash of the system prompt
  session         bigint NOT NULL,         -- a hash of the client's name for its session; 0 when none
  PRIMARY KEY (hash, conversation_id, seq)
);

CREATE INDEX prefixes_of_conversation ON continuo.prefixes (conversation_id, seq, hash);

CREATE TABLE continuo.blobs (
  -- Bytes under their own SHA-256 in hex.
  hash text COLLATE "C" PRIMARY KEY,
  data bytea NOT NULL
); -- by hash

CREATE TABLE continuo.turns (
  -- A turn, who may write it, and how it ended.
  conversation_id text COLLATE "C" NOT NULL,
  id              text COLLATE "C" NOT NULL,
  state           text NOT NULL,           -- running, finished, failed; void: as if it had never been
  owner           text NOT NULL,           -- the process that runs it, or that ended it
  fence           bigint NOT NULL,         -- of its newest lease; the running turn's is the conversation's highest
  lease_until     timestamptz,             -- NULL when it has ended, -infinity when the owner gave the lease back
  last_event      bigint NOT NULL DEFAULT 0, -- of those in turn_events; 0 when there are none
  signals         bigint NOT NULL DEFAULT 0, -- how many turn_signals has
  started_at      text COLLATE "C" NOT NULL,
  ended_at        text COLLATE "C",        -- NULL while it runs
  request         text NOT NULL,           -- JSON: what it was started with
  ended           text,                    -- JSON: how it ended; NULL while it runs
  told            boolean GENERATED ALWAYS AS (last_event + signals > 0) STORED, -- in an index, in the place of what each event changes
  PRIMARY KEY (conversation_id, id)
); -- by conversation_id

CREATE UNIQUE INDEX turns_running ON continuo.turns (conversation_id) WHERE state = 'running';

CREATE UNIQUE INDEX turns_by_fence ON continuo.turns (conversation_id, fence);

CREATE INDEX turns_by_start ON continuo.turns (conversation_id, started_at, id) WHERE state <> 'void';

CREATE INDEX turns_by_lease ON continuo.turns (lease_until) WHERE state = 'running';

CREATE INDEX turns_to_prune ON continuo.turns (ended_at) WHERE ended_at IS NOT NULL AND told;

CREATE TABLE continuo.turn_events (
  -- The steps of turns for readers who come later: a row for each time that some were written.
  conversation_id text COLLATE "C" NOT NULL,
  turn_id         text COLLATE "C" NOT NULL,
  last_id         bigint NOT NULL,         -- of the row's events
  body            text NOT NULL,           -- JSON list of ids and data in turn
  PRIMARY KEY (conversation_id, turn_id, last_id)
); -- by conversation_id

CREATE TABLE continuo.turn_signals (
  -- What the owner of a turn is told.
  conversation_id text COLLATE "C" NOT NULL,
  turn_id         text COLLATE "C" NOT NULL,
  number          bigint NOT NULL,         -- of the turn's signals, from 1
  body            text NOT NULL,           -- JSON
  PRIMARY KEY (conversation_id, turn_id, number)
); -- by conversation_id

CREATE TABLE continuo.runs (
  -- The runs of workflows as the events on their entries have them: an index, made anew from the entries.
  conversation_id text COLLATE "C" NOT NULL,
  id              text COLLATE "C" NOT NULL,
  project_id      text COLLATE "C" NOT NULL, -- the conversation's
  workflow_id     text NOT NULL,
  key_id          text NOT NULL,           -- the API key that it is charged to; '' for none
  state           text NOT NULL,           -- running, waiting, failed, stopped; over: finished, cancelled
  first_seq       bigint NOT NULL,         -- of the entry that the run began with
  started_at      text COLLATE "C" NOT NULL,
  updated_at      text COLLATE "C" NOT NULL, -- of its newest event
  ended_at        text COLLATE "C",        -- NULL while it may go on
  PRIMARY KEY (conversation_id, id)
); -- by conversation_id

CREATE INDEX runs_by_id ON continuo.runs (project_id, id);

CREATE INDEX runs_by_start ON continuo.runs (project_id, started_at, id);

CREATE INDEX runs_of_conversation ON continuo.runs (conversation_id, started_at, id);

CREATE INDEX runs_running ON continuo.runs (updated_at, conversation_id, id) WHERE state = 'running';

CREATE TABLE continuo.usage (
  -- The requests that a conversation's own entries answer, counted by day and model.
  conversation_id    text COLLATE "C" NOT NULL,
  day                text COLLATE "C" NOT NULL, -- of the answers, in UTC
  model              text COLLATE "C" NOT NULL,
  requests           bigint NOT NULL,
  input_tokens       bigint NOT NULL,      -- with the cached ones
  cached_tokens      bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  output_tokens      bigint NOT NULL,
  last_seq           bigint NOT NULL,      -- of the newest answer
  shares             text NOT NULL,        -- of the newest requests: cached tokens in per cent, three characters each
  cost_nano          bigint NOT NULL,      -- of those with a price, in billionths of a US dollar
  priced             bigint NOT NULL,      -- how many requests have one
  PRIMARY KEY (conversation_id, day, model)
); -- by conversation_id

CREATE TABLE continuo.spending (
  -- What requests to models used and cost. No deletion takes any: the rows have no words.
  project_id         text COLLATE "C" NOT NULL,
  key_id             text COLLATE "C" NOT NULL, -- of the caller; empty: none
  day                text COLLATE "C" NOT NULL, -- of the answers, in UTC
  user_id            text COLLATE "C" NOT NULL, -- of the conversation; empty: none
  provider           text COLLATE "C" NOT NULL,
  model              text COLLATE "C" NOT NULL,
  writer             bigint NOT NULL,      -- each connection that writes adds to rows of its own, so that none waits for another
  requests           bigint NOT NULL,
  input_tokens       bigint NOT NULL,      -- with the cached ones
  cached_tokens      bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  output_tokens      bigint NOT NULL,      -- with the reasoning ones
  reasoning_tokens   bigint NOT NULL,
  cost_nano          bigint NOT NULL,      -- of those with a price, in billionths of a US dollar
  priced             bigint NOT NULL,      -- how many requests have one
  PRIMARY KEY (project_id, key_id, day, user_id, provider, model, writer)
); -- by project_id

CREATE INDEX spending_by_day ON continuo.spending (project_id, day);

CREATE INDEX spending_of_user ON continuo.spending (project_id, user_id, day) WHERE user_id <> '';

CREATE TABLE continuo.finished_turns (
  -- The turns that ended; they have no words, and stay when conversations are deleted.
  number          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  position        bigint,                  -- set by a reader; NULL until one needs it
  project_id      text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C" NOT NULL,
  turn_id         text COLLATE "C" NOT NULL,
  user_id         text COLLATE "C" NOT NULL,
  key_id          text COLLATE "C" NOT NULL,
  state           text NOT NULL,           -- finished, failed
  ended_at        text COLLATE "C" NOT NULL,
  ended           text NOT NULL            -- JSON: how it ended, as turns has it
);

CREATE UNIQUE INDEX finished_turns_by_position ON continuo.finished_turns (position) WHERE position IS NOT NULL;

CREATE INDEX finished_turns_of_project ON continuo.finished_turns (project_id, position) WHERE position IS NOT NULL;

CREATE INDEX finished_turns_new ON continuo.finished_turns (number) WHERE position IS NULL;

CREATE TABLE continuo.finished_position (
  -- One row: the highest position, and the lock under which positions are given.
  last bigint NOT NULL
);

INSERT INTO continuo.finished_position (last) VALUES (0);

CREATE TABLE continuo.feed_pruned (
  -- The newest turn of a user that was removed from finished_turns: a reader that is before it has missed some.
  project_id text COLLATE "C" NOT NULL,
  user_id    text COLLATE "C" NOT NULL,
  position   bigint NOT NULL,
  PRIMARY KEY (project_id, user_id)
);

CREATE TABLE continuo.feed_positions (
  -- Up to where receivers have accepted the turns that ended.
  name     text COLLATE "C" PRIMARY KEY,
  position bigint NOT NULL
);

CREATE TABLE continuo.documents (
  -- The index of words; it runs behind the log.
  conversation_id text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,         -- 0: the conversation's title
  project_id      text COLLATE "C" NOT NULL,
  added           bigint NOT NULL,         -- when, as Unix nanoseconds
  terms           tsvector NOT NULL,       -- as package fulltext makes them, and the conversation and project in terms of their own
  PRIMARY KEY (conversation_id, seq)
); -- by conversation_id

CREATE INDEX documents_by_term ON continuo.documents USING gin (terms) WITH (gin_pending_list_limit = 256); -- kilobytes, which each search reads

CREATE INDEX documents_by_age ON continuo.documents (conversation_id, added, seq);

CREATE INDEX documents_of_project ON continuo.documents (project_id, added, conversation_id, seq);

CREATE TABLE continuo.vectors (
  -- Embeddings of entries that documents has; empty unless the settings name a model for them.
  conversation_id text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,
  vector          bytea NOT NULL,          -- a signed byte for each dimension
  PRIMARY KEY (conversation_id, seq)
); -- by conversation_id

CREATE TABLE continuo.embedded (
  -- How far vectors has a conversation's own entries.
  conversation_id text COLLATE "C" PRIMARY KEY,
  model           text NOT NULL,           -- that made them, with its dimensions
  seq             bigint NOT NULL
); -- by conversation_id

CREATE TABLE continuo.projects (
  id         text COLLATE "C" PRIMARY KEY,
  created_at text COLLATE "C" NOT NULL
);

CREATE TABLE continuo.api_keys (
  id         text COLLATE "C" PRIMARY KEY,
  project_id text COLLATE "C" NOT NULL,
  user_id    text COLLATE "C" NOT NULL,    -- whose conversations it may reach; empty: all of the project
  name       text NOT NULL,
  hash       text NOT NULL,                -- SHA-256 of the secret, in hex
  created_at text COLLATE "C" NOT NULL,
  expires_at text COLLATE "C",
  revoked_at text COLLATE "C",
  budget     text                          -- JSON: what requests to models may use in a period; NULL: no bound
);

CREATE TABLE continuo.sessions (
  -- What keys opened for browsers.
  id         text COLLATE "C" PRIMARY KEY,
  key_id     text COLLATE "C" NOT NULL,
  hash       text NOT NULL,                -- SHA-256 of the secret, in hex
  created_at text COLLATE "C" NOT NULL,
  expires_at text COLLATE "C" NOT NULL
);

CREATE INDEX sessions_by_end ON continuo.sessions (expires_at);

CREATE TABLE continuo.audit (
  -- Who read and changed what, in the order of commits; it has no words of conversations.
  position        bigint PRIMARY KEY,
  at              text COLLATE "C" NOT NULL,
  project_id      text COLLATE "C" NOT NULL,
  key_id          text COLLATE "C" NOT NULL, -- of the caller; empty: none
  operation       text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C" NOT NULL, -- empty: none, or several
  event           text NOT NULL            -- JSON: the rest
);

CREATE INDEX audit_of_project ON continuo.audit (project_id, position);

CREATE INDEX audit_of_conversation ON continuo.audit (conversation_id, position) WHERE conversation_id <> '';

CREATE INDEX audit_by_time ON continuo.audit (at);

CREATE TABLE continuo.audit_position (
  -- One row: the highest position, and the lock under which positions are given.
  last bigint NOT NULL
);

INSERT INTO continuo.audit_position (last) VALUES (0);

CREATE TABLE continuo.leases (
  -- Of what only one process does at a time, but for turns.
  name     text COLLATE "C" PRIMARY KEY,
  owner    text COLLATE "C" NOT NULL,      -- '' when it was given back
  fence    bigint NOT NULL,                -- how many owners it has had
  renewals bigint NOT NULL DEFAULT 0       -- how often one renewed it
);

-- The terms of a document include those of the periods of its project that it was added in, by which the newest documents with a
-- common word are found. Documents that there are have none: the index of words is made again, in the background.

TRUNCATE continuo.documents;

UPDATE continuo.conversations SET indexed_seq = fork_seq, indexed_title = NULL
WHERE NOT deleted AND (indexed_seq <> fork_seq OR indexed_title IS NOT NULL);
