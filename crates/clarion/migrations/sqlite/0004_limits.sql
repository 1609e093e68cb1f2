-- The limits of accounts and applications are counted where calls are claimed.
ALTER TABLE call_queue ADD COLUMN account_sid TEXT NOT NULL DEFAULT '';
UPDATE call_queue SET account_sid = coalesce((SELECT account_sid FROM calls WHERE calls.call_sid = call_queue.call_sid), '');
CREATE INDEX call_queue_customer ON call_queue (account_sid, app_id) WHERE node IS NOT NULL AND parked = 0;

-- How many calls of an account or application may start now, in thousandths, as it was at a moment.
CREATE TABLE start_tokens (
  customer TEXT PRIMARY KEY,
  tokens INTEGER NOT NULL,
  counted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
