-- What a call is for, by the type of its bill line: 14 a notification, 13 a verification code.
ALTER TABLE calls ADD COLUMN type SMALLINT NOT NULL DEFAULT 14;
-- Its application cancelled it for the case that nobody has answered yet.
ALTER TABLE call_queue ADD COLUMN cancel_before_answer BOOLEAN NOT NULL DEFAULT FALSE;
-- When an account was changed last; empty where it has not been since.
ALTER TABLE accounts ADD COLUMN updated_at BIGINT;
-- What the answer with a bill calls the address, in JSON; empty where it is as the platform has it.
ALTER TABLE applications ADD COLUMN bill_json_key TEXT;
