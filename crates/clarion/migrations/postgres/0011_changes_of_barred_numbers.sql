-- What was changed in do_not_call, so that a server reads what is new instead of all of it.
CREATE TABLE do_not_call_changes (
  revision BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  number TEXT NOT NULL,
  is_barred BOOLEAN NOT NULL,
  changed_at BIGINT NOT NULL
);
CREATE INDEX do_not_call_changes_age ON do_not_call_changes (changed_at);
