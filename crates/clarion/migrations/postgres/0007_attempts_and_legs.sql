-- An attempt is one dialled number of a call and has one line in the bill: the first by the callSid, later ones by callSid-2, callSid-3 …
-- Written once, by the commit that ends it. Calls that ended before have no row: their one attempt is the call itself.
CREATE TABLE attempts (
  call_sid TEXT COLLATE "C" NOT NULL,
  attempt SMALLINT NOT NULL,
  number TEXT NOT NULL,
  extension TEXT,
  outcome SMALLINT NOT NULL,
  -- Empty where it was never dialled.
  dialled_at BIGINT,
  answered_at BIGINT,
  ended_at BIGINT NOT NULL,
  PRIMARY KEY (call_sid, attempt)
);

-- A leg is one INVITE to one address over one trunk. Written once, by the commit that ends its call or puts it back into the queue.
CREATE TABLE legs (
  call_sid TEXT COLLATE "C" NOT NULL,
  attempt SMALLINT NOT NULL,
  leg INTEGER NOT NULL,
  trunk TEXT NOT NULL,
  address TEXT NOT NULL,
  transport TEXT,
  sent_at BIGINT NOT NULL,
  rang_at BIGINT,
  answered_at BIGINT,
  ended_at BIGINT NOT NULL,
  sip_code SMALLINT,
  q850_cause SMALLINT,
  phrase TEXT,
  hung_up_by SMALLINT NOT NULL,
  -- The figures of its sound; empty where there was none. Jitter is in microseconds.
  codec TEXT,
  packets_sent INTEGER,
  packets_late INTEGER,
  packets_received INTEGER,
  packets_lost INTEGER,
  jitter INTEGER,
  worst_jitter INTEGER,
  PRIMARY KEY (call_sid, attempt, leg)
);

-- Which attempt a call is at, and how many legs of it are stored. (The older columns "attempts" count trunks that were tried.)
ALTER TABLE call_queue ADD COLUMN attempt SMALLINT NOT NULL DEFAULT 1;
ALTER TABLE call_queue ADD COLUMN legs INTEGER NOT NULL DEFAULT 0;
