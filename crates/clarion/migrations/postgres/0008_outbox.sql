-- What is owed to an application is one queue: the final callback of a call (seq 0), and its events (from 1 on). It may be tried at most
-- until expires_at, by the store's clock; a final callback has no such limit.
ALTER TABLE callbacks ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE callbacks ADD COLUMN expires_at BIGINT;
ALTER TABLE callbacks DROP CONSTRAINT callbacks_pkey;
ALTER TABLE callbacks ADD PRIMARY KEY (call_sid, seq);
ALTER TABLE callback_attempts ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE callback_attempts DROP CONSTRAINT callback_attempts_pkey;
ALTER TABLE callback_attempts ADD PRIMARY KEY (call_sid, seq, attempt);
-- Events of a call arrive in their order: one is under way at a time.
CREATE UNIQUE INDEX callbacks_event_under_way ON callbacks (call_sid) WHERE state = 1 AND seq > 0;
