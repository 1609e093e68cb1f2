-- Who changed what and when. It is only ever added to.
CREATE TABLE audit_trail (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at BIGINT NOT NULL,
  -- The operator's name in the console.
  operator TEXT,
  -- The user of the machine, on the command line.
  system_user TEXT,
  -- Where they came from.
  address TEXT,
  action TEXT NOT NULL,
  detail TEXT NOT NULL,
  -- Why nothing was changed, where that was so.
  failure TEXT
);
CREATE FUNCTION audit_trail_is_kept() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the audit trail is only added to'; END $$;
CREATE TRIGGER audit_trail_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_trail
EXECUTE FUNCTION audit_trail_is_kept();
