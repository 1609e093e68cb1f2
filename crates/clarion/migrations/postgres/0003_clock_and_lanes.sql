-- A lease belongs to a node and holds for every call that the node has: one row is written, however many calls there are.
ALTER TABLE nodes ADD COLUMN lease_until BIGINT NOT NULL DEFAULT 0;
-- The schema that the node was made for. Nodes of the first version wrote none.
ALTER TABLE nodes ADD COLUMN schema_version INTEGER;

-- A call waits in a lane: of its application, its route (the trunks that carry its number) and its priority.
ALTER TABLE call_queue ADD COLUMN route TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE call_queue ADD COLUMN priority SMALLINT NOT NULL DEFAULT 5;
-- 0: in its lane. 1: parked while its callee is being called. 2: set aside, because it shall end without being dialled.
ALTER TABLE call_queue ADD COLUMN parked SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE call_queue ALTER COLUMN app_id TYPE TEXT COLLATE "C";
DROP INDEX call_queue_due;
DROP INDEX call_queue_alive;
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

-- The steps of a call change no indexed column: with room on its page a row is updated in place. Small tables that change all the time are
-- cleaned early.
ALTER TABLE call_queue SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE nodes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE leases SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE probe SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE callee_calls SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE callbacks SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
