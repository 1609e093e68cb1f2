-- What an application called its requests: the same name again is the same call. Kept until two days after the call has ended.
CREATE TABLE request_keys (
  app_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  call_sid TEXT NOT NULL,
  accepted_at INTEGER NOT NULL,
  -- Of the fields of the request.
  digest TEXT NOT NULL,
  PRIMARY KEY (app_id, request_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX request_keys_call ON request_keys (call_sid);
