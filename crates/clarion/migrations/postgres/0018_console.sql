-- What operators look for: the calls of an application (and of an account, which is all its applications), and those to a number, the newest first. CallSids
-- sort by time. Every accepted call is written into both, so there are no others: what else is asked searches a stretch of calls.
-- The collation is that of no other index: PostgreSQL would otherwise walk through all calls for the few of an application that it takes for a busy one.
CREATE INDEX calls_by_app ON calls (app_id, call_sid COLLATE "POSIX");
CREATE INDEX calls_by_number ON calls (number, call_sid COLLATE "POSIX");
