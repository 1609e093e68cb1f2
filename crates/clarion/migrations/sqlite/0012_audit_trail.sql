-- Who changed what and when. It is only ever added to.
CREATE TABLE audit_trail (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  -- The operator's name in the console.
  operator TEXT,
  -- The user of the machine, on the command line.
  system_user TEXT,
  -- Where they came from.
  address TEXT,
  action TEXT NOT NULL,
  detail TEXT NOT NULL,
  -- Why nothing was changed, where that was so.
  failure TEXT
);
CREATE TRIGGER audit_trail_stays_as_it_is BEFORE UPDATE ON audit_trail
BEGIN SELECT RAISE(ABORT, 'the audit trail is only added to'); END;
CREATE TRIGGER audit_trail_is_kept BEFORE DELETE ON audit_trail
BEGIN SELECT RAISE(ABORT, 'the audit trail is only added to'); END;
