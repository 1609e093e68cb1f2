-- Who speaks the texts of an application; empty for the platform's first voice of the language. And its lexicon, as JSON; empty where it has no words.
ALTER TABLE applications ADD COLUMN voice TEXT;
ALTER TABLE applications ADD COLUMN lexicon TEXT;
-- Who spoke the text of an attempt.
ALTER TABLE attempts ADD COLUMN voice TEXT;
