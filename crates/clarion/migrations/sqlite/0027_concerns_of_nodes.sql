-- What somebody should look at on a node, as it says itself, for the consoles of the others: JSON, none before it has said anything.
ALTER TABLE nodes ADD COLUMN concerns TEXT;
