-- Times are milliseconds since 1970 in UTC; money is millionths of the currency unit; days are YYYY-MM-DD in the platform's zone.
-- Hot tables carry no foreign keys: a call is only ever written after its account and application were read, and nothing deletes those.

CREATE TABLE accounts (
  sid TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  auth_token TEXT NOT NULL,
  state TEXT NOT NULL,
  bill_download BOOLEAN NOT NULL,
  custom_display_number BOOLEAN NOT NULL,
  requests_per_second INTEGER,
  requests_at_once INTEGER,
  calls_per_second INTEGER,
  calls_at_once INTEGER,
  balance BIGINT,
  spending_limit BIGINT,
  spent BIGINT NOT NULL DEFAULT 0,
  reserved BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);

-- What calls cost, by account ('' for the platform's defaults, written anew at every start) and called prefix.
CREATE TABLE rates (
  account_sid TEXT COLLATE "C" NOT NULL,
  prefix TEXT COLLATE "C" NOT NULL,
  unit_seconds INTEGER NOT NULL,
  price BIGINT NOT NULL,
  unanswered BIGINT NOT NULL,
  PRIMARY KEY (account_sid, prefix)
);

-- Money set aside for a call of an account with a balance or a limit, by the rate of the moment when it was accepted.
CREATE TABLE call_reservations (
  call_sid TEXT COLLATE "C" PRIMARY KEY,
  account_sid TEXT NOT NULL,
  prefix TEXT NOT NULL,
  unit_seconds INTEGER NOT NULL,
  price BIGINT NOT NULL,
  unanswered BIGINT NOT NULL,
  units INTEGER NOT NULL,
  amount BIGINT NOT NULL
);

-- The numbers that an account may show to the called party.
CREATE TABLE number_rules (
  account_sid TEXT NOT NULL REFERENCES accounts (sid),
  pattern TEXT NOT NULL,
  PRIMARY KEY (account_sid, pattern)
);

-- The networks that an account's requests may come from; none means any.
CREATE TABLE allowed_networks (
  account_sid TEXT NOT NULL REFERENCES accounts (sid),
  network TEXT NOT NULL,
  PRIMARY KEY (account_sid, network)
);

CREATE TABLE applications (
  id TEXT PRIMARY KEY,
  account_sid TEXT NOT NULL REFERENCES accounts (sid),
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  callback_secret TEXT,
  calls_per_second INTEGER,
  calls_at_once INTEGER,
  created_at BIGINT NOT NULL
);
CREATE INDEX applications_account ON applications (account_sid, id);

-- Owner is an application id, or '' for the platform's common files. Content names the bytes in the object store.
CREATE TABLE voice_files (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  content TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  duration BIGINT NOT NULL,
  added_at BIGINT NOT NULL,
  PRIMARY KEY (owner, name)
);

-- Written at accept, and once more when the call ends. What happens in between is in call_queue.
CREATE TABLE calls (
  call_sid TEXT COLLATE "C" PRIMARY KEY,
  account_sid TEXT NOT NULL,
  app_id TEXT NOT NULL,
  accepted_at BIGINT NOT NULL,
  called TEXT NOT NULL,
  number TEXT NOT NULL,
  extension TEXT,
  caller TEXT,
  prompt TEXT NOT NULL,
  max_talk INTEGER,
  resp_url TEXT,
  user_data TEXT,
  outcome SMALLINT,
  trunk TEXT,
  attempts INTEGER,
  dialled_at BIGINT,
  rang_at BIGINT,
  answered_at BIGINT,
  ended_at BIGINT,
  sip_code SMALLINT,
  reason TEXT
);

-- Narrow, and a row only while its call is alive, so that accept and claim stay flat however long the history is.
CREATE TABLE call_queue (
  call_sid TEXT COLLATE "C" PRIMARY KEY,
  app_id TEXT NOT NULL,
  callee TEXT NOT NULL,
  due_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  state SMALLINT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  node TEXT,
  fence BIGINT NOT NULL DEFAULT 0,
  lease_until BIGINT,
  trunk TEXT,
  dialled_at BIGINT,
  rang_at BIGINT,
  answered_at BIGINT,
  dialog TEXT,
  -- When its process was last seen, from the first time that it was taken over.
  seen_at BIGINT,
  cancelled BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX call_queue_due ON call_queue (app_id, due_at, call_sid) WHERE state = 0;
CREATE INDEX call_queue_alive ON call_queue (lease_until) WHERE state > 0;
CREATE INDEX call_queue_node ON call_queue (node) WHERE state > 0;
CREATE INDEX call_queue_callee ON call_queue (callee) WHERE state > 0;
CREATE INDEX call_queue_cancelled ON call_queue (call_sid) WHERE cancelled;

-- Which callee was called when, for the caps on that; a row is forgotten after a day.
CREATE TABLE callee_calls (
  callee TEXT NOT NULL,
  claimed_at BIGINT NOT NULL,
  call_sid TEXT NOT NULL,
  PRIMARY KEY (callee, claimed_at, call_sid)
);
CREATE INDEX callee_calls_age ON callee_calls (claimed_at);

-- Numbers that do not want to be called: canonical digits.
CREATE TABLE do_not_call (
  number TEXT PRIMARY KEY,
  added_at BIGINT NOT NULL
);

-- What an operator has switched: no dialling at all, a trunk that is drained.
CREATE TABLE switches (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  set_at BIGINT NOT NULL
);

-- What the end of a call owes to its application; written in the commit that ends it. Failures counts from the last replay.
CREATE TABLE callbacks (
  call_sid TEXT COLLATE "C" PRIMARY KEY,
  app_id TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  host TEXT COLLATE "C" NOT NULL,
  url TEXT NOT NULL,
  body TEXT NOT NULL,
  state SMALLINT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  owed_at BIGINT NOT NULL,
  due_at BIGINT,
  finished_at BIGINT,
  node TEXT,
  fence BIGINT NOT NULL DEFAULT 0,
  lease_until BIGINT
);
-- By host, so that the next due one of each host is found without passing over all that wait for a dead one. The time it is owed since
-- comes along for the metrics.
CREATE INDEX callbacks_due ON callbacks (host, due_at, owed_at) WHERE state = 0;
CREATE INDEX callbacks_leased ON callbacks (call_sid) WHERE state = 1;
CREATE INDEX callbacks_given_up ON callbacks (call_sid) WHERE state = 3;

CREATE TABLE callback_attempts (
  call_sid TEXT COLLATE "C" NOT NULL,
  attempt INTEGER NOT NULL,
  started_at BIGINT NOT NULL,
  duration BIGINT NOT NULL,
  verdict TEXT NOT NULL,
  status SMALLINT,
  error TEXT,
  answer TEXT,
  PRIMARY KEY (call_sid, attempt)
);

CREATE TABLE bill_lines (
  order_id TEXT COLLATE "C" PRIMARY KEY,
  account_sid TEXT NOT NULL,
  app_id TEXT NOT NULL,
  bill_day TEXT COLLATE "C" NOT NULL,
  type SMALLINT NOT NULL,
  call_sid TEXT COLLATE "C",
  caller TEXT NOT NULL,
  called TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  answered_at BIGINT,
  ended_at BIGINT NOT NULL,
  seconds INTEGER NOT NULL,
  units INTEGER NOT NULL,
  rate BIGINT NOT NULL,
  fee BIGINT NOT NULL,
  outcome TEXT NOT NULL,
  user_data TEXT
);
CREATE INDEX bill_lines_day ON bill_lines (bill_day, app_id, ended_at, order_id);

-- One row: the first day that is open. What ends, or is brought, goes there or into a later day; closing a day moves it on.
CREATE TABLE bill_calendar (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  first_open TEXT COLLATE "C" NOT NULL
);
INSERT INTO bill_calendar (one, first_open) VALUES (1, '0001-01-01');

-- Days that were closed, and when the last of their files was written.
CREATE TABLE bill_days (
  day TEXT COLLATE "C" PRIMARY KEY,
  closed_at BIGINT NOT NULL,
  filed_at BIGINT
);

CREATE TABLE bill_files (
  id TEXT PRIMARY KEY,
  account_sid TEXT NOT NULL,
  app_id TEXT NOT NULL,
  day TEXT COLLATE "C" NOT NULL,
  keywords TEXT NOT NULL,
  object TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  lines BIGINT NOT NULL,
  fee BIGINT NOT NULL,
  sha256 TEXT NOT NULL,
  made_at BIGINT NOT NULL,
  expires_at BIGINT,
  UNIQUE (app_id, day, keywords)
);
CREATE INDEX bill_files_day ON bill_files (day);
CREATE INDEX bill_files_expiry ON bill_files (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE bill_tokens (
  token_hash TEXT PRIMARY KEY,
  file_id TEXT NOT NULL REFERENCES bill_files (id),
  account_sid TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX bill_tokens_expiry ON bill_tokens (expires_at);
CREATE INDEX bill_tokens_file ON bill_tokens (file_id);

-- One life of one server process. Its heartbeats have come without a gap since steady_since.
CREATE TABLE nodes (
  node TEXT PRIMARY KEY,
  steady_since BIGINT NOT NULL,
  heartbeat_at BIGINT NOT NULL
);

-- Duties that must run once however many nodes there are.
CREATE TABLE leases (
  duty TEXT PRIMARY KEY,
  node TEXT NOT NULL,
  fence BIGINT NOT NULL,
  lease_until BIGINT NOT NULL
);
