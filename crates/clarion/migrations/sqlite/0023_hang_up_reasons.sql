-- Why we have hung up on a leg (`domain::leg::HangUpReason`); empty where the other side has, and where it is not known.
ALTER TABLE legs ADD COLUMN hang_up_reason TEXT;
