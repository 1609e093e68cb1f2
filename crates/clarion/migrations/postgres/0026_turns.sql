-- Calls that wait for their callee, by account: each account has its most urgent one, and accounts take turns.
DROP INDEX call_queue_parked;
CREATE INDEX call_queue_parked ON call_queue (callee, account_sid, priority, due_at, call_sid) WHERE parked = 1;
-- Calls that are due, by the moment at which their patience is over: where no trunk of their route can be used, another number has its turn then.
CREATE INDEX call_queue_patient ON call_queue (route, (due_at + patience)) WHERE patience IS NOT NULL AND pass_at IS NULL AND node IS NULL AND parked = 0;
