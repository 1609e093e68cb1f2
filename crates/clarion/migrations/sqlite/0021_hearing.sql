-- Who has answered, where the request wanted to know (`domain::hearing::AnsweredBy`): of a notice, and of an attempt.
ALTER TABLE calls ADD COLUMN answered_by INTEGER;
ALTER TABLE attempts ADD COLUMN answered_by INTEGER;
-- What was heard on a leg, with the milliseconds that it took: "machine/-@2340", "-/announcement@5120".
ALTER TABLE legs ADD COLUMN heard TEXT;
