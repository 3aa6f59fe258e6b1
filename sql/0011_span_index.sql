-- Where the ids of spans and traces occur, so that a bare id is found without a service or a time. docs/decisions/0016-span-index.md.
--
-- An association says: samples of the profile (service, series, time) carry this id; or: the span with this id is in the
-- span_group (service, start). Ids stand as 64-bit keys, of which some bits may be left out: whoever finds an association looks at
-- the profile itself. So what a deletion or retention took is simply not there any more, and the index need not know of it.

-- What a commit brought, in the same transaction as its profiles or spans. The builder moves it into span_index some seconds later.
CREATE TABLE hearth_data.span_fresh (
    service_id int4 NOT NULL,
    fresh_no int8 GENERATED ALWAYS AS IDENTITY,
    n_associations int4 NOT NULL CHECK (n_associations > 0),
    associations bytea NOT NULL, -- include/hearth/model/span_index.h, in no order
    PRIMARY KEY (fresh_no, service_id)
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE hearth_data.span_fresh ALTER associations SET STORAGE EXTERNAL;

-- Sorted by key. A part is cut into 2^bits rows; `bucket` is the first `bits` bits of its keys. Parts of a day are merged as they
-- become many. part: from the sequence.
CREATE TABLE hearth_data.span_index (
    tenant_id int4 NOT NULL,
    day int4 NOT NULL, -- of the profile's time, or the group's start
    bits int2 NOT NULL CHECK (bits BETWEEN 0 AND 24),
    bucket int4 NOT NULL,
    part int8 NOT NULL,
    n_associations int4 NOT NULL CHECK (n_associations > 0),
    associations bytea NOT NULL,
    PRIMARY KEY (tenant_id, day, bits, bucket, part)
) PARTITION BY RANGE (day);
ALTER TABLE hearth_data.span_index ALTER associations SET STORAGE EXTERNAL;
CREATE SEQUENCE hearth_data.span_index_part;

-- Profiles and spans that were stored before are not in the index; where nothing was, it reaches back to the beginning.
CREATE TABLE hearth_data.span_index_begin (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    since int8 NOT NULL -- nanoseconds
);
INSERT INTO hearth_data.span_index_begin (since)
SELECT CASE WHEN EXISTS (SELECT FROM hearth_data.profile) OR EXISTS (SELECT FROM hearth_data.segment)
    OR EXISTS (SELECT FROM hearth_data.span_group) THEN (extract(epoch FROM clock_timestamp()) * 1e9)::int8
    ELSE '-9223372036854775808'::int8 END;
