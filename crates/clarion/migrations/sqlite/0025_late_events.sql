-- Events that wait, by when they were due: those that get no place in time are given up.
CREATE INDEX callbacks_waiting_events ON callbacks (due_at) WHERE state = 0 AND expires_at IS NOT NULL;
