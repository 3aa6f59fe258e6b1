-- Roll-ups, compaction, retention and erasure. sql/README.md explains keys, growth and lock order; docs/decisions/0011
-- has the protocol that makes roll-ups exact.
--
-- All of it is written by one builder among any number of servers: the holder of the lease. Every transaction of it
-- begins by locking the lease row and comparing the token.

CREATE TABLE hearth_data.lease (
    name text PRIMARY KEY,
    holder int4 NOT NULL, -- writer_id
    token int8 NOT NULL, -- raised whenever the holder changes: who holds an older one is fenced out
    expires_at timestamptz NOT NULL
);

-- What stands where, per service. Missing row: nothing is rolled up, nothing is late.
--   watermark     ingest puts profiles before it into profile_late; raised first, never lowered
--   built_to      blocks and hour totals are complete before it (<= watermark, a whole 10 minutes)
--   compacted_to  the profiles before it are in `segment`; what `profile` still holds of them does not count
--   generation    raised by every transaction that changes any of this, or moves profiles between tables: a reader
--                 plans by one generation and looks in its own snapshot whether it still is the one
CREATE TABLE hearth_data.roll_state (
    service_id int4 PRIMARY KEY,
    watermark int8 NOT NULL,
    built_to int8 NOT NULL,
    compacted_to int8 NOT NULL,
    generation int8 NOT NULL
) WITH (fillfactor = 50);

-- Profiles that came after their bucket was closed, until the builder has folded them in. Same columns as profile.
CREATE TABLE hearth_data.profile_late (LIKE hearth_data.profile INCLUDING DEFAULTS INCLUDING STORAGE)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX profile_late_series_ts ON hearth_data.profile_late (service_id, series_id, ts);

-- Blocks: the sum of all profiles of a series, or of a shape of a whole service (series_id = -shape_id), whose dictionary
-- is (service_id, day of t0, writer_id), with t0 <= ts < t0 + length. Several parts add up (late profiles, merged
-- now and then). part is the generation of the transaction that made it. ids and each of vals are columns as in
-- profile (include/hearth/model/columns.h), packed (include/hearth/codec/compress.h). members: of whole-service blocks,
-- which series are in the sum (include/hearth/model/block.h).
CREATE TABLE hearth_data.roll_10m (
    service_id int4 NOT NULL,
    series_id int4 NOT NULL,
    t0 int8 NOT NULL,
    writer_id int4 NOT NULL,
    part int8 NOT NULL,
    n_profiles int4 NOT NULL,
    totals int8[] NOT NULL,
    members bytea,
    ids bytea NOT NULL,
    vals bytea[] NOT NULL,
    PRIMARY KEY (service_id, series_id, t0, writer_id, part)
) PARTITION BY RANGE (t0);
ALTER TABLE hearth_data.roll_10m ALTER ids SET STORAGE EXTERNAL;
ALTER TABLE hearth_data.roll_10m ALTER vals SET STORAGE EXTERNAL;

CREATE TABLE hearth_data.roll_1h (
    LIKE hearth_data.roll_10m INCLUDING DEFAULTS INCLUDING STORAGE,
    PRIMARY KEY (service_id, series_id, t0, writer_id, part)
) PARTITION BY RANGE (t0);
CREATE TABLE hearth_data.roll_1d (
    LIKE hearth_data.roll_10m INCLUDING DEFAULTS INCLUDING STORAGE,
    PRIMARY KEY (service_id, series_id, t0, writer_id, part)
) PARTITION BY RANGE (t0);

-- Time and totals of every profile of a series and hour, packed: what a time series reads. ts and each of vals:
-- include/hearth/model/block.h. Parts are disjoint sets of profiles.
CREATE TABLE hearth_data.hour_totals (
    service_id int4 NOT NULL,
    series_id int4 NOT NULL,
    t0 int8 NOT NULL,
    part int8 NOT NULL,
    n_profiles int4 NOT NULL,
    ts bytea NOT NULL,
    vals bytea[] NOT NULL,
    PRIMARY KEY (service_id, series_id, t0, part)
) PARTITION BY RANGE (t0);

-- Compacted hours: many profiles of a service and hour, sorted by series and time, in one zstd frame
-- (include/hearth/model/segment.h). series_ids: those that are inside, sorted. (part, ordinal): the generation of the
-- transaction that wrote it, and the number within.
CREATE TABLE hearth_data.segment (
    service_id int4 NOT NULL,
    t0 int8 NOT NULL,
    part int8 NOT NULL,
    ordinal int4 NOT NULL,
    n_rows int4 NOT NULL,
    n_bytes int4 NOT NULL, -- before compression
    series_ids int4[] NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (service_id, t0, part, ordinal)
) PARTITION BY RANGE (t0);
ALTER TABLE hearth_data.segment ALTER payload SET STORAGE EXTERNAL;

-- The log of deletions. Never trimmed: it says who removed what.
CREATE TABLE hearth_data.erasure (
    erasure_id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id int4 NOT NULL,
    selector text NOT NULL,
    from_ts int8 NOT NULL,
    to_ts int8 NOT NULL, -- included
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    n_series int8 NOT NULL,
    done_at timestamptz, -- physically gone
    n_rows int8 NOT NULL DEFAULT 0 -- profile rows removed
);

-- What is hidden until the builder has removed it: profiles of these series with from_ts <= ts <= to_ts.
CREATE TABLE hearth_data.tombstone (
    service_id int4 NOT NULL,
    erasure_id int8 NOT NULL,
    from_ts int8 NOT NULL,
    to_ts int8 NOT NULL,
    series_ids int4[] NOT NULL, -- sorted
    PRIMARY KEY (service_id, erasure_id)
);

-- Settings of a tenant that differ from the server's: retain-raw, retain-10m, retain-1h, retain-1d (nanoseconds; 0: for ever).
CREATE TABLE hearth_data.tenant_setting (
    tenant_id int4 NOT NULL,
    name text NOT NULL,
    value int8 NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

-- Raised when rows of the catalogue were removed: servers that know an older epoch load it afresh.
ALTER TABLE hearth_data.catalog_clock ADD COLUMN epoch int8 NOT NULL DEFAULT 0;
