-- Intakes: addresses at which monitoring tools bring alerts. Of the token there is only a hash. The settings are read and replaced as a whole, so they are one text, in JSON.
CREATE TABLE intakes (
  name TEXT PRIMARY KEY,
  app_id TEXT NOT NULL REFERENCES applications (id),
  format TEXT NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  settings TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Incidents that are open. The id tells one from an earlier one of the same key; notices are counted, and the last one is named, with the alerts that it tells of (JSON).
CREATE TABLE incidents (
  intake TEXT NOT NULL,
  incident_key TEXT NOT NULL,
  id TEXT NOT NULL,
  notices INTEGER NOT NULL,
  call_sid TEXT,
  fingerprints TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (intake, incident_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX incidents_seen ON incidents (seen_at);

-- What a notice is about is over: it was called off for that reason (`cancelled` is set too).
ALTER TABLE call_queue ADD COLUMN resolved INTEGER NOT NULL DEFAULT 0;
