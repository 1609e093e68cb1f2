-- Operators of the console. The generation grows with every new password: sign-ins of an earlier one are worth nothing.
CREATE TABLE operators (
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL,
  password TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who is signed in: by a hash of what the browser keeps. Every node reads them.
CREATE TABLE sign_ins (
  id_hash TEXT PRIMARY KEY,
  operator TEXT NOT NULL,
  generation INTEGER NOT NULL,
  form_token TEXT NOT NULL,
  address TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_ins_expiring ON sign_ins (expires_at);
