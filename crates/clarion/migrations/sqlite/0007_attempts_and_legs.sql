-- An attempt is one dialled number of a call and has one line in the bill: the first by the callSid, later ones by callSid-2, callSid-3 …
-- Written once, by the commit that ends it. Calls that ended before have no row: their one attempt is the call itself.
CREATE TABLE attempts (
  call_sid TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  number TEXT NOT NULL,
  extension TEXT,
  outcome INTEGER NOT NULL,
  -- Empty where it was never dialled.
  dialled_at INTEGER,
  answered_at INTEGER,
  ended_at INTEGER NOT NULL,
  PRIMARY KEY (call_sid, attempt)
) STRICT, WITHOUT ROWID;

-- A leg is one INVITE to one address over one trunk. Written once, by the commit that ends its call or puts it back into the queue.
CREATE TABLE legs (
  call_sid TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  leg INTEGER NOT NULL,
  trunk TEXT NOT NULL,
  address TEXT NOT NULL,
  transport TEXT,
  sent_at INTEGER NOT NULL,
  rang_at INTEGER,
  answered_at INTEGER,
  ended_at INTEGER NOT NULL,
  sip_code INTEGER,
  q850_cause INTEGER,
  phrase TEXT,
  hung_up_by INTEGER NOT NULL,
  -- The figures of its sound; empty where there was none. Jitter is in microseconds.
  codec TEXT,
  packets_sent INTEGER,
  packets_late INTEGER,
  packets_received INTEGER,
  packets_lost INTEGER,
  jitter INTEGER,
  worst_jitter INTEGER,
  PRIMARY KEY (call_sid, attempt, leg)
) STRICT, WITHOUT ROWID;

-- Which attempt a call is at, and how many legs of it are stored. (The older columns "attempts" count trunks that were tried.)
ALTER TABLE call_queue ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1;
ALTER TABLE call_queue ADD COLUMN legs INTEGER NOT NULL DEFAULT 0;
