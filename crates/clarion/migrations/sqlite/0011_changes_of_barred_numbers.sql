-- What was changed in do_not_call, so that a server reads what is new instead of all of it.
CREATE TABLE do_not_call_changes (
  revision INTEGER PRIMARY KEY AUTOINCREMENT,
  number TEXT NOT NULL,
  is_barred INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
);
CREATE INDEX do_not_call_changes_age ON do_not_call_changes (changed_at);
