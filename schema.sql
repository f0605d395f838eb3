-- Posthorn's database contract.
--
-- Read this file if you write to the outbox from your own program, in any language. It works on SQLite 3.37.0 and later,
-- can be run again on a database that has it already, and touches no table but outbox_* and posthorn_*.
--
-- Its parts stand between marks. In Posthorn's own database all of them are in one file. In a database that belongs to your
-- program only the parts "outbox" and "answers" are: `posthorn schema --beside` prints them, `posthorn install --db` brings them
-- in. The part "control" is then in a file of its own, and there are no documents.
--
-- The shortest way to send something, inside your own transaction:
--
--     BEGIN IMMEDIATE;
--     UPDATE orders SET paid = 1 WHERE id = 1001;
--     INSERT INTO outbox_messages(type, payload) VALUES ('order-paid', '{"order":1001}');
--     COMMIT;
--
-- All times are integers: microseconds since 1970-01-01 UTC. Every refusal is an error whose text begins with
-- "posthorn[code]:" and says what to do; the code is stable.

-- outbox: begin

-- meta: begin

CREATE TABLE IF NOT EXISTS posthorn_meta (
  name  TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- meta: end

-- schema_version: the version of this contract. fence: the highest fencing token given so far; it only rises.
-- commits, in a file of Posthorn's own: how many there were.
INSERT INTO posthorn_meta(name, value) VALUES ('schema_version', 1), ('fence', 0) ON CONFLICT DO NOTHING;

-- What may be published: one row for each declared version of an integration event. Written from the record files.
CREATE TABLE IF NOT EXISTS outbox_types (
  type           TEXT    NOT NULL,
  schema_version INTEGER NOT NULL,
  PRIMARY KEY (type, schema_version)
) STRICT, WITHOUT ROWID;

-- What the delivering program can read; rewritten each time it starts. Empty: none has started yet, nothing is refused.
CREATE TABLE IF NOT EXISTS outbox_workers (
  kind           TEXT    NOT NULL,
  type           TEXT    NOT NULL,
  schema_version INTEGER NOT NULL,
  worker         TEXT    NOT NULL,
  PRIMARY KEY (kind, type, schema_version)
) STRICT, WITHOUT ROWID;

-- Which messages reach which handler. A message reaches a handler once, however many of its routes match.
-- Patterns are those of GLOB and match integration events only; a journey step or a provider effect has exactly one route.
CREATE TABLE IF NOT EXISTS outbox_routes (
  handler TEXT NOT NULL CHECK (length(handler) BETWEEN 1 AND 64),
  kind    TEXT NOT NULL DEFAULT 'integration-event' CHECK (kind IN ('integration-event', 'journey-step', 'provider-effect')),
  pattern TEXT NOT NULL CHECK (length(pattern) BETWEEN 1 AND 64),
  tenant  TEXT NOT NULL DEFAULT '*',   -- one tenant, or * for all
  source  TEXT NOT NULL DEFAULT 'code', -- who keeps this route: code, destination
  PRIMARY KEY (kind, pattern, handler, tenant)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS outbox_routes_one_handler ON outbox_routes(kind, pattern) WHERE kind <> 'integration-event';

-- Lanes that hold their deliveries: pending and visible, never dropped. A handler without a row flows.
CREATE TABLE IF NOT EXISTS outbox_lanes (
  handler TEXT PRIMARY KEY,
  held_at INTEGER NOT NULL CHECK (held_at BETWEEN 0 AND 253402300799999999),
  reason  TEXT NOT NULL   -- paused, disabled, gone …, in words for a person
) STRICT, WITHOUT ROWID;

-- Messages: immutable from the moment they are staged.
CREATE TABLE IF NOT EXISTS outbox_messages (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of commits; leave it out
  -- Unique for a tenant, and the key by which receivers suppress repeats. Give your own, [A-Za-z0-9_-]{1,64}, or leave it out
  -- (time-ordered hexadecimal, which keeps the index small to write).
  id             TEXT    NOT NULL DEFAULT (printf('%012x', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)) || lower(hex(randomblob(10)))),
  kind           TEXT    NOT NULL DEFAULT 'integration-event',
  type           TEXT    NOT NULL,                   -- a stable name: lower case, digits, hyphens
  schema_version INTEGER NOT NULL DEFAULT 1,
  record         TEXT    GENERATED ALWAYS AS (CASE kind WHEN 'integration-event' THEN 'integration-events/' || type END) VIRTUAL,
  tenant         TEXT    NOT NULL DEFAULT 'main',
  occurred_at    INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
  deliver_at     INTEGER,                            -- not before this time
  ordering_key   TEXT,                               -- messages with one key reach a handler one at a time, in commit order
  content_type   TEXT    NOT NULL DEFAULT 'application/json',
  payload        ANY     NOT NULL,                   -- text or bytes; delivered as given, byte for byte
  payload_sha256 BLOB,                               -- leave it out; filled before the first attempt
  headers        TEXT    NOT NULL DEFAULT '{}',      -- a JSON object of strings: traceparent, correlation, causation, producer …
  CONSTRAINT payload_is_text_or_blob CHECK (typeof(payload) IN ('text', 'blob')),
  UNIQUE (tenant, id)
) STRICT;

-- Deliveries: one message for one handler. A column that means something in one state only is NULL in every other.
CREATE TABLE IF NOT EXISTS outbox_deliveries (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  seq              INTEGER NOT NULL REFERENCES outbox_messages(seq),
  handler          TEXT    NOT NULL,
  tenant           TEXT    NOT NULL,
  ordering_key     TEXT,
  state            TEXT    NOT NULL DEFAULT 'pending',
  attempt          INTEGER NOT NULL DEFAULT 0,       -- starts so far; never reset
  charged          INTEGER NOT NULL DEFAULT 0,       -- those that the retry bound applies to; 0 again after a replay
  waited           INTEGER NOT NULL DEFAULT 0,       -- microseconds of backoff behind it, which the retry horizon bounds; 0 again after a replay
  next_attempt_at  INTEGER,                          -- pending: not before this time
  blocked          INTEGER,                          -- pending: 1 while an earlier delivery of its ordering key is unfinished
  lease_owner      TEXT,                             -- processing: who
  lease_expires_at INTEGER,                          -- processing: until when
  fence            INTEGER NOT NULL DEFAULT 0,       -- the fencing token of the latest claim
  interrupted      INTEGER NOT NULL DEFAULT 0,       -- 1: its last attempt ended with the process, so the next is claimed alone
  blocks           INTEGER,                          -- 1: holds back the later deliveries of its ordering key
  last_error       TEXT,
  failure_class    TEXT,
  suppressed       INTEGER,                          -- dispatched: 1 when the handler had handled this message before
  completed_at     INTEGER,                          -- dispatched, dead-letter
  unreachable_at   INTEGER,                          -- since when its target cannot be reached, if so
  resend_of        INTEGER,                          -- the dispatched delivery that this one sends again
  created_at       INTEGER NOT NULL,
  CONSTRAINT state_decides_which_columns_are_null CHECK (CASE state
    WHEN 'pending'     THEN next_attempt_at IS NOT NULL AND blocked IN (0, 1) AND lease_owner IS NULL AND lease_expires_at IS NULL AND suppressed IS NULL AND completed_at IS NULL
    WHEN 'processing'  THEN next_attempt_at IS NULL AND blocked IS NULL AND lease_owner IS NOT NULL AND lease_expires_at IS NOT NULL AND suppressed IS NULL AND completed_at IS NULL AND fence > 0
    WHEN 'dispatched'  THEN next_attempt_at IS NULL AND blocked IS NULL AND lease_owner IS NULL AND lease_expires_at IS NULL AND suppressed IN (0, 1) AND completed_at IS NOT NULL AND blocks IS NULL AND fence > 0
    WHEN 'dead-letter' THEN next_attempt_at IS NULL AND blocked IS NULL AND lease_owner IS NULL AND lease_expires_at IS NULL AND suppressed IS NULL AND completed_at IS NOT NULL AND failure_class IS NOT NULL AND fence > 0
    ELSE 0 END),
  CONSTRAINT charged_is_part_of_attempt CHECK (attempt >= charged AND charged >= 0 AND waited >= 0),
  -- Far above what occurs, and far below what the next claim could not count or write as a time.
  CONSTRAINT numbers_are_bounded CHECK (attempt < 1000000000 AND waited < 253402300800000000 AND created_at BETWEEN 0 AND 253402300799999999
    AND coalesce(next_attempt_at, lease_expires_at, completed_at) BETWEEN 0 AND 253402300799999999
    AND coalesce(unreachable_at, 0) BETWEEN -253402300799999999 AND 253402300799999999), -- it is moved with a clock that was set
  CONSTRAINT only_ordered_deliveries_block CHECK (blocks IS NULL OR (blocks = 1 AND ordering_key IS NOT NULL))
) STRICT;

-- One partial index for each question that is asked; none of them grows with the deliveries that are done.
CREATE INDEX IF NOT EXISTS outbox_deliveries_message ON outbox_deliveries(seq);
CREATE INDEX IF NOT EXISTS outbox_deliveries_due     ON outbox_deliveries(handler, tenant, next_attempt_at) WHERE state = 'pending' AND blocked = 0;
CREATE INDEX IF NOT EXISTS outbox_deliveries_open    ON outbox_deliveries(handler) WHERE completed_at IS NULL;
CREATE INDEX IF NOT EXISTS outbox_deliveries_leased  ON outbox_deliveries(lease_expires_at) WHERE state = 'processing';
CREATE INDEX IF NOT EXISTS outbox_deliveries_dead    ON outbox_deliveries(handler) WHERE state = 'dead-letter';
CREATE INDEX IF NOT EXISTS outbox_deliveries_blocking_dead ON outbox_deliveries(handler) WHERE state = 'dead-letter' AND blocks = 1;
CREATE INDEX IF NOT EXISTS outbox_deliveries_interrupted ON outbox_deliveries(handler) WHERE interrupted = 1;
CREATE INDEX IF NOT EXISTS outbox_deliveries_order   ON outbox_deliveries(handler, tenant, ordering_key, seq) WHERE blocks = 1;

-- Attempts that failed, with the evidence. A delivery that succeeds at once has none.
CREATE TABLE IF NOT EXISTS outbox_attempts (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery   INTEGER NOT NULL REFERENCES outbox_deliveries(id) ON DELETE CASCADE,
  attempt    INTEGER NOT NULL,
  fence      INTEGER NOT NULL,
  charged    INTEGER NOT NULL CHECK (charged IN (0, 1)),
  class      TEXT    NOT NULL,
  status     INTEGER,          -- the HTTP status, where there was one
  error      TEXT    NOT NULL,
  excerpt    TEXT,             -- the beginning of what the target answered
  started_at INTEGER NOT NULL,
  duration   INTEGER NOT NULL, -- microseconds
  CONSTRAINT numbers_are_bounded CHECK (started_at BETWEEN 0 AND 253402300799999999 AND duration BETWEEN 0 AND 3153600000000000) -- a century
) STRICT;

CREATE INDEX IF NOT EXISTS outbox_attempts_delivery ON outbox_attempts(delivery);

-- Operators' replays, written in the replay's own transaction. Kept when the delivery is purged, until they are old themselves.
CREATE TABLE IF NOT EXISTS outbox_replays (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery    INTEGER NOT NULL,
  message     TEXT    NOT NULL,
  tenant      TEXT    NOT NULL,
  handler     TEXT    NOT NULL,
  actor       TEXT    NOT NULL,
  reason      TEXT    NOT NULL,
  replayed_at INTEGER NOT NULL CHECK (replayed_at BETWEEN 0 AND 253402300799999999),
  failure     TEXT    NOT NULL   -- the failure that this replay answers: class and error
) STRICT;

CREATE INDEX IF NOT EXISTS outbox_replays_delivery ON outbox_replays(delivery);
CREATE INDEX IF NOT EXISTS outbox_replays_tenant   ON outbox_replays(tenant);

-- What a handler has handled already. Outlives the message, so that a late repeat is still known.
CREATE TABLE IF NOT EXISTS outbox_inbox (
  handler    TEXT    NOT NULL,
  tenant     TEXT    NOT NULL,
  message    TEXT    NOT NULL,
  handled_at INTEGER NOT NULL,
  purged_at  INTEGER,            -- when the message was removed; the row goes a retry horizon later
  CONSTRAINT numbers_are_bounded CHECK (handled_at BETWEEN 0 AND 253402300799999999 AND coalesce(purged_at, 0) BETWEEN 0 AND 253402300799999999),
  PRIMARY KEY (handler, tenant, message)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS outbox_inbox_purged ON outbox_inbox(purged_at) WHERE purged_at IS NOT NULL;

-- Backfills: a handler that is given the kept messages of the past which its routes match, slice by slice, while its lane is held.
CREATE TABLE IF NOT EXISTS outbox_backfills (
  handler       TEXT    PRIMARY KEY,
  actor         TEXT    NOT NULL,
  occurred_from INTEGER,           -- only messages that occurred at this time or later
  occurred_to   INTEGER,           -- only messages that occurred before this time
  next_seq      INTEGER NOT NULL,  -- where the next slice begins
  last_seq      INTEGER NOT NULL,  -- the last message that it looks at
  added         INTEGER NOT NULL DEFAULT 0,
  started_at    INTEGER NOT NULL,
  finished_at   INTEGER,           -- NULL while it goes on
  CONSTRAINT numbers_are_bounded CHECK (coalesce(occurred_from, 0) BETWEEN 0 AND 253402300799999999 AND coalesce(occurred_to, 0) BETWEEN 0 AND 253402300799999999
    AND started_at BETWEEN 0 AND 253402300799999999 AND coalesce(finished_at, 0) BETWEEN 0 AND 253402300799999999)
) STRICT, WITHOUT ROWID;

-- Refusals. They stand before the insert, because INSERT OR REPLACE and INSERT OR IGNORE pass by every other constraint.
CREATE TRIGGER IF NOT EXISTS outbox_messages_refuse BEFORE INSERT ON outbox_messages
BEGIN
  SELECT CASE
    WHEN NEW.seq > 0
      THEN RAISE(ABORT, 'posthorn[bad-seq]: seq is given by the outbox; leave it out')
    -- length and GLOB end at a NUL, so that anything might follow one.
    WHEN instr(NEW.id || NEW.tenant || coalesce(NEW.ordering_key, '') || NEW.content_type || NEW.headers, char(0)) > 0
      THEN RAISE(ABORT, 'posthorn[bad-text]: id, tenant, ordering_key, content_type and headers must not hold the character NUL')
    WHEN NEW.id IS NULL OR length(NEW.id) NOT BETWEEN 1 AND 64 OR NEW.id GLOB '*[^A-Za-z0-9_-]*'
      THEN RAISE(ABORT, 'posthorn[bad-id]: id must be 1 to 64 of A-Z a-z 0-9 _ -; leave it out to have one made')
    WHEN NEW.kind IS NULL OR NEW.kind NOT IN ('integration-event', 'journey-step', 'provider-effect')
      THEN RAISE(ABORT, 'posthorn[bad-kind]: kind must be integration-event, journey-step or provider-effect')
    WHEN NEW.type IS NULL OR length(NEW.type) NOT BETWEEN 1 AND 63 OR NEW.type NOT GLOB '[a-z]*' OR NEW.type GLOB '*[^a-z0-9-]*'
      THEN RAISE(ABORT, 'posthorn[bad-type]: type must be 1 to 63 lower-case letters, digits and hyphens, a letter first')
    WHEN NEW.schema_version IS NULL OR typeof(NEW.schema_version) <> 'integer' OR NEW.schema_version NOT BETWEEN 1 AND 1000000
      THEN RAISE(ABORT, 'posthorn[bad-version]: schema_version must be a whole number from 1 to 1000000')
    WHEN NEW.tenant IS NULL OR length(NEW.tenant) NOT BETWEEN 1 AND 64 OR NEW.tenant GLOB '*[^A-Za-z0-9_-]*'
      THEN RAISE(ABORT, 'posthorn[bad-tenant]: tenant must be 1 to 64 of A-Z a-z 0-9 _ -; leave it out for main')
    WHEN NEW.occurred_at IS NULL OR typeof(NEW.occurred_at) <> 'integer' OR NEW.occurred_at NOT BETWEEN 0 AND 253402300799999999
      THEN RAISE(ABORT, 'posthorn[bad-time]: occurred_at must be microseconds since 1970 UTC; leave it out for now')
    WHEN NEW.deliver_at IS NOT NULL AND (typeof(NEW.deliver_at) <> 'integer' OR NEW.deliver_at NOT BETWEEN 0 AND 253402300799999999)
      THEN RAISE(ABORT, 'posthorn[bad-time]: deliver_at must be microseconds since 1970 UTC; leave it out to deliver at once')
    WHEN NEW.ordering_key IS NOT NULL AND (typeof(NEW.ordering_key) <> 'text' OR length(NEW.ordering_key) NOT BETWEEN 1 AND 200)
      THEN RAISE(ABORT, 'posthorn[bad-ordering-key]: ordering_key must be 1 to 200 characters')
    WHEN NEW.ordering_key IS NOT NULL AND NEW.deliver_at IS NOT NULL
      THEN RAISE(ABORT, 'posthorn[ordered-and-scheduled]: a message has an ordering_key or a deliver_at, not both: a scheduled one would hold back its key')
    WHEN NEW.content_type IS NULL OR typeof(NEW.content_type) <> 'text' OR length(NEW.content_type) NOT BETWEEN 3 AND 200 OR NEW.content_type NOT GLOB '?*/?*' OR NEW.content_type GLOB '*[^ -~]*'
      THEN RAISE(ABORT, 'posthorn[bad-content-type]: content_type must be a media type of at most 200 printable characters')
    WHEN typeof(NEW.payload) NOT IN ('text', 'blob')
      THEN RAISE(ABORT, 'posthorn[bad-payload]: payload must be text or a blob; it is delivered byte for byte')
    WHEN length(CAST(NEW.payload AS BLOB)) > 16777216
      THEN RAISE(ABORT, 'posthorn[payload-too-large]: payload must be at most 16 MiB; store it elsewhere and send its address')
    WHEN NEW.payload_sha256 IS NOT NULL AND (typeof(NEW.payload_sha256) <> 'blob' OR length(NEW.payload_sha256) <> 32)
      THEN RAISE(ABORT, 'posthorn[bad-hash]: payload_sha256 is filled by the outbox; leave it out')
    WHEN NEW.headers IS NULL OR typeof(NEW.headers) <> 'text' OR length(NEW.headers) > 8192 OR NOT json_valid(NEW.headers) OR json_type(NEW.headers) <> 'object'
      THEN RAISE(ABORT, 'posthorn[bad-headers]: headers must be a JSON object of at most 8192 characters')
    WHEN EXISTS (SELECT 1 FROM outbox_messages m WHERE m.tenant = NEW.tenant AND m.id = NEW.id)
      THEN RAISE(ABORT, 'posthorn[duplicate-id]: a message with this id is staged already; an id stands for one message for ever')
    WHEN NEW.kind = 'integration-event' AND NOT EXISTS (SELECT 1 FROM outbox_types t WHERE t.type = NEW.type AND t.schema_version = NEW.schema_version)
      THEN RAISE(ABORT, 'posthorn[undeclared-type]: this type and schema_version are not declared; run: posthorn records new integration-event TYPE --schema-version N')
    WHEN NEW.kind <> 'integration-event' AND NOT EXISTS (SELECT 1 FROM outbox_routes r WHERE r.kind = NEW.kind AND r.pattern = NEW.type AND r.tenant IN ('*', NEW.tenant))
      THEN RAISE(ABORT, 'posthorn[no-handler]: a journey step or provider effect needs the one handler registered for its type')
    WHEN NOT EXISTS (SELECT 1 FROM outbox_workers w WHERE w.kind = NEW.kind AND w.type = NEW.type AND w.schema_version = NEW.schema_version) AND EXISTS (SELECT 1 FROM outbox_workers)
      THEN RAISE(ABORT, 'posthorn[unreadable]: the running worker cannot read this type and schema_version yet; deploy the reader first, then the writer')
  END;
END;

-- Fan-out: every handler with a matching route gets a delivery of its own, in the transaction that stages the message.
-- What matches nothing is kept for the reserved handler "unrouted": counted, shown, and claimable by a later route.
CREATE TRIGGER IF NOT EXISTS outbox_messages_fan_out AFTER INSERT ON outbox_messages
BEGIN
  INSERT INTO outbox_deliveries(seq, handler, tenant, ordering_key, next_attempt_at, blocked, blocks, created_at)
  SELECT DISTINCT NEW.seq, r.handler, NEW.tenant, NEW.ordering_key,
    -- A time of occurrence in the future delays nothing; deliver_at does.
    coalesce(NEW.deliver_at, min(NEW.occurred_at, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)),
    NEW.ordering_key IS NOT NULL AND EXISTS (SELECT 1 FROM outbox_deliveries d
      WHERE d.blocks = 1 AND d.handler = r.handler AND d.tenant = NEW.tenant AND d.ordering_key = NEW.ordering_key),
    CASE WHEN NEW.ordering_key IS NOT NULL THEN 1 END,
    NEW.occurred_at
  FROM outbox_routes r
  WHERE r.kind = NEW.kind AND r.tenant IN ('*', NEW.tenant)
    AND CASE NEW.kind WHEN 'integration-event' THEN NEW.type GLOB r.pattern ELSE NEW.type = r.pattern END;

  INSERT INTO outbox_deliveries(seq, handler, tenant, next_attempt_at, blocked, created_at)
  SELECT NEW.seq, 'unrouted', NEW.tenant, NEW.occurred_at, 0, NEW.occurred_at
  WHERE NOT EXISTS (SELECT 1 FROM outbox_deliveries d WHERE d.seq = NEW.seq);
END;

CREATE TRIGGER IF NOT EXISTS outbox_messages_immutable
BEFORE UPDATE OF seq, id, kind, type, schema_version, tenant, occurred_at, deliver_at, ordering_key, content_type, payload, headers ON outbox_messages
BEGIN
  SELECT RAISE(ABORT, 'posthorn[immutable]: a staged message is never changed; stage another one');
END;

CREATE TRIGGER IF NOT EXISTS outbox_messages_hash_once BEFORE UPDATE OF payload_sha256 ON outbox_messages
WHEN OLD.payload_sha256 IS NOT NULL OR NEW.payload_sha256 IS NULL OR length(NEW.payload_sha256) <> 32
BEGIN
  SELECT RAISE(ABORT, 'posthorn[immutable]: the hash of a payload is written once');
END;

CREATE TRIGGER IF NOT EXISTS outbox_messages_kept BEFORE DELETE ON outbox_messages
WHEN EXISTS (SELECT 1 FROM outbox_deliveries d WHERE d.seq = OLD.seq)
BEGIN
  SELECT RAISE(ABORT, 'posthorn[kept]: this message still has deliveries; retention removes it when they are done');
END;

CREATE TRIGGER IF NOT EXISTS outbox_deliveries_kept BEFORE DELETE ON outbox_deliveries
WHEN OLD.completed_at IS NULL
BEGIN
  SELECT RAISE(ABORT, 'posthorn[kept]: an unfinished delivery is never deleted; cancel it');
END;

-- The outbox record: a delivery joined to its message.
CREATE VIEW IF NOT EXISTS outbox_records AS
SELECT d.id AS delivery, d.handler, d.state, d.attempt, d.charged, d.next_attempt_at, d.blocked, d.lease_owner, d.lease_expires_at, d.fence,
  d.last_error, d.failure_class, d.suppressed, d.completed_at, d.resend_of, d.created_at,
  m.seq, m.id, m.kind, m.type, m.schema_version, m.record, m.tenant, m.occurred_at, m.deliver_at, m.ordering_key, m.content_type, m.payload,
  m.payload_sha256, m.headers
FROM outbox_deliveries d JOIN outbox_messages m ON m.seq = d.seq;

-- For your own screens: how each message stands. SELECT state FROM outbox_status WHERE id = ?
CREATE VIEW IF NOT EXISTS outbox_status AS
SELECT m.tenant, m.id, m.type, m.occurred_at,
  (SELECT CASE
     WHEN sum(d.state = 'dead-letter') > 0 THEN 'dead-letter'
     WHEN sum(d.state = 'processing')  > 0 THEN 'processing'
     WHEN sum(d.state = 'pending')     > 0 THEN 'pending'
     ELSE 'dispatched' END
   FROM outbox_deliveries d WHERE d.seq = m.seq) AS state,
  (SELECT max(d.completed_at) FROM outbox_deliveries d WHERE d.seq = m.seq) AS completed_at,
  (SELECT group_concat(d.handler || ': ' || d.last_error, char(10)) FROM outbox_deliveries d
   WHERE d.seq = m.seq AND d.last_error IS NOT NULL AND d.state <> 'dispatched') AS last_error
FROM outbox_messages m;

-- outbox: end

-- documents: begin

-- Documents: for programs that keep their data in Posthorn itself. A row in version 0 does not exist; a deleted one keeps its version.
CREATE TABLE IF NOT EXISTS documents (
  tenant     TEXT    NOT NULL,
  collection TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  version    INTEGER NOT NULL CHECK (version > 0),
  body       BLOB,             -- the JSON as given; NULL: deleted
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, collection, id)
) STRICT, WITHOUT ROWID;

-- documents: end

-- answers: begin

-- Answers to commands that carried an Idempotency-Key, written in the command's own transaction.
CREATE TABLE IF NOT EXISTS posthorn_idempotency (
  tenant     TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  request    BLOB    NOT NULL,  -- SHA-256 of method, path and body
  status     INTEGER NOT NULL,
  answer     BLOB    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS posthorn_idempotency_age ON posthorn_idempotency(created_at);

-- answers: end

-- control: begin

-- Destinations: handlers that somebody created at run time. The name is the handler's.
CREATE TABLE IF NOT EXISTS posthorn_destinations (
  name       TEXT    PRIMARY KEY,
  tenant     TEXT    NOT NULL,
  kind       TEXT    NOT NULL CHECK (kind IN ('webhook', 'file', 'pull')),
  types      TEXT    NOT NULL,  -- JSON array of patterns
  options    TEXT    NOT NULL,  -- JSON object: url, timeout, concurrency … as its integration defines them
  secrets    BLOB,              -- sealed signing secrets
  created_at INTEGER NOT NULL,
  created_by TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- API tokens; only a hash is stored.
CREATE TABLE IF NOT EXISTS posthorn_tokens (
  id         TEXT    PRIMARY KEY,
  hash       BLOB    NOT NULL UNIQUE,
  name       TEXT    NOT NULL,
  tenant     TEXT    NOT NULL,
  role       TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  created_at INTEGER NOT NULL,
  created_by TEXT    NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- Browsers that are signed in; only a hash of the cookie is stored.
CREATE TABLE IF NOT EXISTS posthorn_sessions (
  id         TEXT    PRIMARY KEY,
  hash       BLOB    NOT NULL UNIQUE,
  actor      TEXT    NOT NULL,
  tenant     TEXT    NOT NULL,
  role       TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  token      TEXT,             -- the API token that it was opened with; it ends with it
  created_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What operators did, beside the replays, which have a table of their own.
CREATE TABLE IF NOT EXISTS posthorn_audit (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  at      INTEGER NOT NULL,
  tenant  TEXT    NOT NULL,
  actor   TEXT    NOT NULL,
  action  TEXT    NOT NULL,   -- destination.create, token.revoke …
  subject TEXT    NOT NULL,
  detail  TEXT    NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX IF NOT EXISTS posthorn_audit_tenant ON posthorn_audit(tenant);

-- How far a database that belongs to another program had come when it was last looked at, so that an older copy of it, put in its place,
-- is noticed.
CREATE TABLE IF NOT EXISTS posthorn_marks (
  name  TEXT    PRIMARY KEY,   -- messages, deliveries: the highest numbers given; fence; whole: up to which message each has a delivery
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- control: end

-- lending: begin

-- The lending branch (posthorn demo, or lending: true): members, copies, loans and reservations of a library.
CREATE TABLE IF NOT EXISTS lending_members (
  tenant        TEXT    NOT NULL,
  id            TEXT    NOT NULL,
  name          TEXT    NOT NULL,
  email         TEXT    NOT NULL,
  suspended     INTEGER NOT NULL DEFAULT 0 CHECK (suspended IN (0, 1)),
  standing_at   INTEGER NOT NULL,            -- when the standing was decided, by whoever decides it
  standing_note TEXT    NOT NULL DEFAULT '', -- why, or what an advisory event said
  registered_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- A copy is on the shelf, on loan, or held for the one whose reservation it fulfils.
CREATE TABLE IF NOT EXISTS lending_copies (
  tenant      TEXT    NOT NULL,
  id          TEXT    NOT NULL,
  work        TEXT    NOT NULL,
  title       TEXT    NOT NULL,
  state       TEXT    NOT NULL DEFAULT 'shelf',
  loan        TEXT,
  reservation TEXT,
  added_at    INTEGER NOT NULL,
  PRIMARY KEY (tenant, id),
  CONSTRAINT state_decides_which_columns_are_null CHECK (CASE state
    WHEN 'shelf' THEN loan IS NULL AND reservation IS NULL
    WHEN 'loan'  THEN loan IS NOT NULL AND reservation IS NULL
    WHEN 'held'  THEN loan IS NULL AND reservation IS NOT NULL
    ELSE 0 END)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS lending_copies_work ON lending_copies(tenant, work, state);

CREATE TABLE IF NOT EXISTS lending_loans (
  tenant      TEXT    NOT NULL,
  id          TEXT    NOT NULL,
  member      TEXT    NOT NULL,
  copy        TEXT    NOT NULL,
  work        TEXT    NOT NULL,
  title       TEXT    NOT NULL,
  borrowed_at INTEGER NOT NULL,
  due_at      INTEGER NOT NULL,
  renewals    INTEGER NOT NULL DEFAULT 0,
  returned_at INTEGER,
  version     INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS lending_loans_copy ON lending_loans(tenant, copy) WHERE returned_at IS NULL;
CREATE INDEX IF NOT EXISTS lending_loans_member      ON lending_loans(tenant, member, due_at) WHERE returned_at IS NULL;
CREATE INDEX IF NOT EXISTS lending_loans_due         ON lending_loans(tenant, due_at) WHERE returned_at IS NULL;
CREATE INDEX IF NOT EXISTS lending_loans_borrowed    ON lending_loans(tenant, borrowed_at);

-- The queue of a work is its waiting reservations in the order of place.
CREATE TABLE IF NOT EXISTS lending_reservations (
  place        INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant       TEXT    NOT NULL,
  id           TEXT    NOT NULL,
  member       TEXT    NOT NULL,
  work         TEXT    NOT NULL,
  title        TEXT    NOT NULL,
  state        TEXT    NOT NULL DEFAULT 'waiting',
  placed_at    INTEGER NOT NULL,
  copy         TEXT,            -- ready, collected: which one is held, or was
  pickup_until INTEGER,         -- ready: until when it is held
  notified_at  INTEGER,
  ended_at     INTEGER,
  loan         TEXT,            -- collected: the loan that it became
  version      INTEGER NOT NULL DEFAULT 1,
  UNIQUE (tenant, id),
  CONSTRAINT state_decides_which_columns_are_null CHECK (CASE state
    WHEN 'waiting'   THEN copy IS NULL AND pickup_until IS NULL AND ended_at IS NULL AND loan IS NULL
    WHEN 'ready'     THEN copy IS NOT NULL AND pickup_until IS NOT NULL AND ended_at IS NULL AND loan IS NULL
    WHEN 'collected' THEN copy IS NOT NULL AND ended_at IS NOT NULL AND loan IS NOT NULL
    WHEN 'expired'   THEN ended_at IS NOT NULL AND loan IS NULL
    WHEN 'cancelled' THEN ended_at IS NOT NULL AND loan IS NULL
    ELSE 0 END)
) STRICT;

CREATE INDEX IF NOT EXISTS lending_reservations_queue  ON lending_reservations(tenant, work, place) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS lending_reservations_member ON lending_reservations(tenant, member) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS lending_reservations_open   ON lending_reservations(tenant, place) WHERE ended_at IS NULL;

-- How often a work was borrowed and returned, counted from the events.
CREATE TABLE IF NOT EXISTS lending_statistics (
  tenant   TEXT    NOT NULL,
  work     TEXT    NOT NULL,
  title    TEXT    NOT NULL,
  borrowed INTEGER NOT NULL DEFAULT 0,
  returned INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, work)
) STRICT, WITHOUT ROWID;

-- The popular shelf as it was last refreshed.
CREATE TABLE IF NOT EXISTS lending_shelf (
  tenant       TEXT    NOT NULL,
  place        INTEGER NOT NULL,
  work         TEXT    NOT NULL,
  title        TEXT    NOT NULL,
  loans        INTEGER NOT NULL,
  refreshed_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, place)
) STRICT, WITHOUT ROWID;

-- Events that came in from outside, by the id that their source gave them: a repetition is known by it.
CREATE TABLE IF NOT EXISTS posthorn_inbound (
  tenant      TEXT    NOT NULL,
  source      TEXT    NOT NULL,
  message     TEXT    NOT NULL,
  type        TEXT    NOT NULL,
  outcome     TEXT    NOT NULL,   -- applied, noted, outdated
  received_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, source, message)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS posthorn_inbound_age ON posthorn_inbound(received_at);

-- lending: end
