-- Lists of numbers that an account keeps: whom a notice calls by `@name`. A list is read and replaced as a whole, so its numbers are one text, in JSON.
CREATE TABLE call_lists (
  account_sid TEXT NOT NULL REFERENCES accounts (sid),
  name TEXT NOT NULL,
  numbers TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (account_sid, name)
) STRICT, WITHOUT ROWID;

-- The do-not-call lists of accounts. (`do_not_call` has the numbers that the operator has barred for all of them.)
-- How a number came onto it: `operator`, `import` or `callee`; a callee did so in a call.
CREATE TABLE account_do_not_call (
  account_sid TEXT NOT NULL,
  number TEXT NOT NULL,
  added_at INTEGER NOT NULL,
  source TEXT NOT NULL,
  call_sid TEXT,
  PRIMARY KEY (account_sid, number)
) STRICT, WITHOUT ROWID;
