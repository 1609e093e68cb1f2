-- What is owed to an application is one queue: the final callback of a call (seq 0), and its events (from 1 on). It may be tried at most
-- until expires_at, by the store's clock; a final callback has no such limit. SQLite cannot widen a key: the rows are copied.
CREATE TABLE outbox (
  call_sid TEXT NOT NULL,
  seq INTEGER NOT NULL DEFAULT 0,
  app_id TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  host TEXT NOT NULL,
  url TEXT NOT NULL,
  body TEXT NOT NULL,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  owed_at INTEGER NOT NULL,
  due_at INTEGER,
  expires_at INTEGER,
  finished_at INTEGER,
  node TEXT,
  fence INTEGER NOT NULL DEFAULT 0,
  lease_until INTEGER,
  PRIMARY KEY (call_sid, seq)
) STRICT;
INSERT INTO outbox (call_sid, app_id, webhook_id, host, url, body, state, attempts, failures, owed_at, due_at, finished_at, node, fence, lease_until)
  SELECT call_sid, app_id, webhook_id, host, url, body, state, attempts, failures, owed_at, due_at, finished_at, node, fence, lease_until
  FROM callbacks ORDER BY call_sid;
DROP TABLE callbacks;
ALTER TABLE outbox RENAME TO callbacks;
CREATE INDEX callbacks_due ON callbacks (host, due_at, owed_at) WHERE state = 0;
CREATE INDEX callbacks_leased ON callbacks (call_sid) WHERE state = 1;
CREATE INDEX callbacks_given_up ON callbacks (call_sid) WHERE state = 3;
-- Events of a call arrive in their order: one is under way at a time.
CREATE UNIQUE INDEX callbacks_event_under_way ON callbacks (call_sid) WHERE state = 1 AND seq > 0;

CREATE TABLE deliveries (
  call_sid TEXT NOT NULL,
  seq INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  duration INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  status INTEGER,
  error TEXT,
  answer TEXT,
  PRIMARY KEY (call_sid, seq, attempt)
) STRICT, WITHOUT ROWID;
INSERT INTO deliveries (call_sid, attempt, started_at, duration, verdict, status, error, answer)
  SELECT call_sid, attempt, started_at, duration, verdict, status, error, answer FROM callback_attempts ORDER BY call_sid, attempt;
DROP TABLE callback_attempts;
ALTER TABLE deliveries RENAME TO callback_attempts;
