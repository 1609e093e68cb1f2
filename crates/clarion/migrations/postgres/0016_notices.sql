-- What a request asks for beyond one call, as JSON; empty where it asks for one call only.
ALTER TABLE calls ADD COLUMN notice TEXT;
-- Who is told what happens to a call, step by step: `callStatePush`, a space, and the address.
ALTER TABLE calls ADD COLUMN events TEXT;
-- How a notice ended (`domain::notice::NoticeEnding`).
ALTER TABLE calls ADD COLUMN ending SMALLINT;
-- Who has confirmed it, as the client wrote their number, and by which key.
ALTER TABLE calls ADD COLUMN confirmed_by TEXT;
ALTER TABLE calls ADD COLUMN confirm_key TEXT;
-- What the callee has said by keys: the key of a confirmation, or `stop`.
ALTER TABLE attempts ADD COLUMN choice TEXT;
ALTER TABLE call_queue ADD COLUMN choice TEXT;
-- Whom the attempt of a notice calls, where that is not the number of the call.
ALTER TABLE call_queue ADD COLUMN to_called TEXT;
ALTER TABLE call_queue ADD COLUMN to_number TEXT;
ALTER TABLE call_queue ADD COLUMN to_extension TEXT;
ALTER TABLE call_queue ADD COLUMN to_caller TEXT;
-- The hours in which calls of an account may be made; empty for any. And whether its urgent calls may be made outside them.
ALTER TABLE accounts ADD COLUMN call_hours TEXT;
ALTER TABLE accounts ADD COLUMN urgent_outside_hours BOOLEAN NOT NULL DEFAULT FALSE;
-- A number that is held back for longer than this, in milliseconds, loses its turn; empty where no other could have it. Since when it is held back, and when
-- it loses its turn: only while it is sure to be held back then, so that whoever looks for those finds nothing else.
ALTER TABLE call_queue ADD COLUMN patience BIGINT;
ALTER TABLE call_queue ADD COLUMN held_since BIGINT;
ALTER TABLE call_queue ADD COLUMN pass_at BIGINT;
CREATE INDEX call_queue_held_back ON call_queue (pass_at) WHERE pass_at IS NOT NULL AND node IS NULL;
