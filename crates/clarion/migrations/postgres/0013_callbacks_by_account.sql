-- Callbacks are claimed in turns between accounts, and then between their receivers. For each application: when its first is due, and when the
-- first for each of its receivers is. callbacks_due stays for programs that claim by the receiver alone.
-- The collation is that of no other index: without statistics PostgreSQL would take any of them for any question, and read all that waits.
CREATE INDEX callbacks_by_app ON callbacks (app_id COLLATE "POSIX", due_at) WHERE state = 0;
CREATE INDEX callbacks_by_receiver ON callbacks (app_id, host COLLATE "POSIX", due_at) WHERE state = 0;
