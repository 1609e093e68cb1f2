-- What an application's audio files take of the disk: a row for all bytes that it has had written, until they are swept.
CREATE TABLE audio_charges (
  owner TEXT NOT NULL REFERENCES applications (id),
  account_sid TEXT NOT NULL REFERENCES accounts (sid),
  content TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  added_at BIGINT NOT NULL,
  PRIMARY KEY (owner, content)
);
CREATE INDEX audio_charges_account ON audio_charges (account_sid, owner, bytes);
INSERT INTO audio_charges (owner, account_sid, content, bytes, added_at)
  SELECT owner, account_sid, content, MAX(bytes), MAX(added_at) FROM audio_files JOIN applications ON applications.id = audio_files.owner
  GROUP BY owner, account_sid, content;

-- Who has any name for some bytes.
CREATE INDEX audio_files_content ON audio_files (content, owner);

-- Uploads of an account in the hour that began with the first of them.
CREATE TABLE audio_uploads (
  account_sid TEXT PRIMARY KEY REFERENCES accounts (sid),
  uploads BIGINT NOT NULL,
  since BIGINT NOT NULL
);
