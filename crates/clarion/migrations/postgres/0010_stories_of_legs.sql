-- More of a leg's story. Empty where it is not known, and in legs of earlier programs.
-- The keys that the callee pressed, with the milliseconds since the answer: "1@2340 2@3100".
ALTER TABLE legs ADD COLUMN keys TEXT;
-- Where its sound was sent to.
ALTER TABLE legs ADD COLUMN media_address TEXT;
-- Milliseconds of the message, and how many of them were sent; without silence and keys.
ALTER TABLE legs ADD COLUMN to_play INTEGER;
ALTER TABLE legs ADD COLUMN played INTEGER;
-- To the peer and back, in microseconds.
ALTER TABLE legs ADD COLUMN round_trip INTEGER;
-- Our packets that did not reach the peer, as it says; negative where packets came twice.
ALTER TABLE legs ADD COLUMN peer_lost INTEGER;
