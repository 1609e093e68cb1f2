-- The queue has a time of its own: it goes on evenly, whatever is done to the machine's clock. Due, expiry and leases are by it.
CREATE TABLE queue_clock (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  queue_time INTEGER NOT NULL,
  -- When that was, by the machine's clock, and by the time since this boot.
  wall_time INTEGER NOT NULL,
  boot TEXT NOT NULL,
  boot_time INTEGER NOT NULL
) STRICT;

-- A lease belongs to a node and holds for every call that the node has: one row is written, however many calls there are.
ALTER TABLE nodes ADD COLUMN lease_until INTEGER NOT NULL DEFAULT 0;
-- The schema that the node was made for. Nodes of the first version wrote none.
ALTER TABLE nodes ADD COLUMN schema_version INTEGER;

-- A call waits in a lane: of its application, its route (the trunks that carry its number) and its priority.
ALTER TABLE call_queue ADD COLUMN route TEXT NOT NULL DEFAULT '';
ALTER TABLE call_queue ADD COLUMN priority INTEGER NOT NULL DEFAULT 5;
-- 0: in its lane. 1: parked while its callee is being called. 2: set aside, because it shall end without being dialled.
ALTER TABLE call_queue ADD COLUMN parked INTEGER NOT NULL DEFAULT 0;
DROP INDEX call_queue_due;
DROP INDEX call_queue_node;
DROP INDEX call_queue_callee;
CREATE INDEX call_queue_lanes ON call_queue (app_id, route, priority, due_at, call_sid) WHERE node IS NULL AND parked = 0;
CREATE INDEX call_queue_expiry ON call_queue (expires_at) WHERE node IS NULL;
CREATE INDEX call_queue_parked ON call_queue (callee, priority, due_at, call_sid) WHERE parked = 1;
CREATE INDEX call_queue_node ON call_queue (node) WHERE node IS NOT NULL;
-- What was claimed and not dialled when the first version stopped goes back to the queue, or ends; it does not hold its callee.
UPDATE call_queue SET parked = 2 WHERE state = 1;
-- One call at a time for a callee.
CREATE UNIQUE INDEX call_queue_callee ON call_queue (callee) WHERE node IS NOT NULL AND parked = 0;
