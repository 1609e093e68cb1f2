-- The number of a node's last question about a trunk that changed its part. A question that was sent before and arrives after it changes nothing.
ALTER TABLE trunk_grants ADD COLUMN question BIGINT NOT NULL DEFAULT 0;
