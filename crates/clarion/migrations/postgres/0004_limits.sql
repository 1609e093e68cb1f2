-- The limits of accounts and applications are counted where calls are claimed.
ALTER TABLE call_queue ADD COLUMN account_sid TEXT NOT NULL DEFAULT '';
UPDATE call_queue SET account_sid = calls.account_sid FROM calls WHERE calls.call_sid = call_queue.call_sid;
CREATE INDEX call_queue_customer ON call_queue (account_sid, app_id) WHERE node IS NOT NULL AND parked = 0;

-- How many calls of an account or application may start now, in thousandths, as it was at a moment.
CREATE TABLE start_tokens (
  customer TEXT PRIMARY KEY,
  tokens BIGINT NOT NULL,
  counted_at BIGINT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Which part of a trunk's channels, and of its starts a second in thousandths, a node may use. Together they are never more than the trunk has.
CREATE TABLE trunk_grants (
  trunk TEXT NOT NULL,
  node TEXT NOT NULL,
  channels INTEGER NOT NULL,
  rate BIGINT NOT NULL,
  in_use INTEGER NOT NULL,
  -- Since when the node has had calls that its part does not suffice for.
  wanting_since BIGINT,
  PRIMARY KEY (trunk, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
