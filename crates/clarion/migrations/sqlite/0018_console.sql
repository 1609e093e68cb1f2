-- What operators look for: the calls of an application (and of an account, which is all its applications), and those to a number, the newest first. CallSids
-- sort by time. Every accepted call is written into both, so there are no others: what else is asked searches a stretch of calls.
CREATE INDEX calls_by_app ON calls (app_id, call_sid);
CREATE INDEX calls_by_number ON calls (number, call_sid);
