-- Where series of the service have no blocks of one length: they would sum so few profiles that these are read instead
-- (docs/decisions/0046-sparse-data.md). Four numbers for each range: length of the blocks, begin, and end (excluded), in
-- nanoseconds; 1 if the blocks of the whole service are absent, too, otherwise 0. Sorted by length and begin, and
-- disjoint for each length.
ALTER TABLE hearth_data.roll_state ADD COLUMN absent int8[] NOT NULL DEFAULT '{}';
