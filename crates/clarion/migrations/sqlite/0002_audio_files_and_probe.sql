-- The word "voice" is for who speaks; a file is an audio file.
ALTER TABLE voice_files RENAME TO audio_files;

-- One row, written by the readiness probe: it proves that a commit can be made durable.
CREATE TABLE probe (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  writes INTEGER NOT NULL
) STRICT;
INSERT INTO probe (one, writes) VALUES (1, 0);
