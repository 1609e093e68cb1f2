-- Programs that know at least so many migrations can work with this schema, also where it is newer than they are.
CREATE TABLE schema_info (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  oldest_program INTEGER NOT NULL
) STRICT;
INSERT INTO schema_info (one, oldest_program) VALUES (1, 5);
