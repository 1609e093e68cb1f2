-- Whose call it was: the caps of callees hold for each account by itself. Where an earlier program has written it is empty, and counts for everybody.
ALTER TABLE callee_calls ADD COLUMN account_sid TEXT NOT NULL DEFAULT '';
-- Trunks that were tried for the earlier attempts of a notice.
ALTER TABLE call_queue ADD COLUMN tries_before INTEGER NOT NULL DEFAULT 0;
-- When the call had ended, where the name is remembered for longer than the call.
ALTER TABLE request_keys ADD COLUMN ended_at BIGINT;
