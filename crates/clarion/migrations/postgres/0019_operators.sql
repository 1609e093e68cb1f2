-- Operators of the console. The generation grows with every new password: sign-ins of an earlier one are worth nothing.
CREATE TABLE operators (
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL,
  password TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  generation BIGINT NOT NULL
);

-- Who is signed in: by a hash of what the browser keeps. Every node reads them.
CREATE TABLE sign_ins (
  id_hash TEXT PRIMARY KEY,
  operator TEXT NOT NULL,
  generation BIGINT NOT NULL,
  form_token TEXT NOT NULL,
  address TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX sign_ins_expiring ON sign_ins (expires_at);
