-- The tables of Hearth. sql/README.md explains keys, growth and lock order.
--
-- Rules that hold from the first migration, so that the same schema can later be distributed by service_id:
-- service_id int4 leads every growing table, primary key and unique constraint; no triggers; no foreign keys;
-- one level of range partitions, no DEFAULT partition, leaves made by LIKE + ATTACH.
-- Times are int8 nanoseconds since the epoch (UTC); days and hours are int4 counts since the epoch.

-- ---- catalogue: small, append-only, every server keeps it in memory ----

-- One row. Whoever adds to the catalogue locks it, takes the next version for all its new rows, and commits: so versions
-- become visible in their order, and "everything above the version I know" is an exact refresh.
CREATE TABLE hearth_data.catalog_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version int8 NOT NULL
);
INSERT INTO hearth_data.catalog_clock (version) VALUES (0);

CREATE TABLE hearth_data.tenant (
    tenant_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    version int8 NOT NULL
);
CREATE INDEX tenant_version ON hearth_data.tenant (version);

-- fingerprint: XXH3-128 of the name (names may be longer than an index entry can be).
CREATE TABLE hearth_data.service (
    service_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id int4 NOT NULL,
    fingerprint uuid NOT NULL,
    name text NOT NULL,
    version int8 NOT NULL,
    UNIQUE (tenant_id, fingerprint)
);
CREATE INDEX service_version ON hearth_data.service (version);

CREATE TABLE hearth_data.label_pair (
    pair_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id int4 NOT NULL,
    fingerprint uuid NOT NULL,
    name text NOT NULL,
    value text NOT NULL,
    version int8 NOT NULL,
    UNIQUE (tenant_id, fingerprint)
);
CREATE INDEX label_pair_version ON hearth_data.label_pair (version);

-- A shape is the ordered list of profile types (name:type:unit:period_type:period_unit) whose value columns the rows of a
-- series carry.
CREATE TABLE hearth_data.shape (
    shape_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id int4 NOT NULL,
    fingerprint uuid NOT NULL,
    profile_types text[] NOT NULL,
    version int8 NOT NULL,
    UNIQUE (tenant_id, fingerprint)
);
CREATE INDEX shape_version ON hearth_data.shape (version);

-- pair_ids: the series' own labels, sorted; service_name, __name__ and what else a profile type says are derived.
CREATE TABLE hearth_data.series (
    service_id int4 NOT NULL,
    series_id int4 GENERATED ALWAYS AS IDENTITY,
    tenant_id int4 NOT NULL,
    shape_id int4 NOT NULL,
    fingerprint uuid NOT NULL, -- of shape and labels
    pair_ids int4[] NOT NULL,
    version int8 NOT NULL,
    PRIMARY KEY (service_id, series_id),
    UNIQUE (service_id, fingerprint)
);
CREATE INDEX series_version ON hearth_data.series (version);
CREATE INDEX series_pairs ON hearth_data.series USING gin (pair_ids);

-- In which hours a series has profiles: label queries are answered for a range, not for all times.
CREATE TABLE hearth_data.series_hour (
    service_id int4 NOT NULL,
    hour int4 NOT NULL,
    series_id int4 NOT NULL,
    tenant_id int4 NOT NULL,
    version int8 NOT NULL,
    PRIMARY KEY (service_id, hour, series_id)
) PARTITION BY RANGE (hour);
CREATE INDEX series_hour_version ON hearth_data.series_hour (version);

-- ---- ingest ----

-- A running server that writes; its id is part of every dictionary and profile id.
CREATE TABLE hearth_data.writer (
    writer_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now() -- refreshed each minute by the server whose batches carry it
);

-- Exactly once: a batch whose commit went unanswered is sent again under the same key; 23505 says it was committed.
CREATE TABLE hearth_data.ingest_batch (
    service_id int4 NOT NULL,
    writer_id int4 NOT NULL,
    seq int8 NOT NULL,
    PRIMARY KEY (service_id, writer_id, seq)
);

-- Sample IDs of the last hour: a push that a client repeats is acknowledged without a second row.
CREATE TABLE hearth_data.push_id (
    service_id int4 NOT NULL,
    id_hash uuid NOT NULL,
    at int8 NOT NULL,
    PRIMARY KEY (service_id, id_hash)
);
CREATE INDEX push_id_at ON hearth_data.push_id (at);

-- Symbols: what the dense stack ids of (service, day, writer) mean. Appended in the transaction of the first profile that
-- needs them; payload is zstd (include/hearth/model/dict.h).
CREATE TABLE hearth_data.dict_chunk (
    service_id int4 NOT NULL,
    day int4 NOT NULL,
    writer_id int4 NOT NULL,
    first_stack int4 NOT NULL,
    first_string int4 NOT NULL,
    n_stacks int4 NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (service_id, day, writer_id, first_stack, first_string)
) PARTITION BY RANGE (day);
ALTER TABLE hearth_data.dict_chunk ALTER payload SET STORAGE EXTERNAL;

-- One row per profile and label set. (writer_id, profile_no) is the identity of the pushed profile, shared by its rows.
-- writer_id with the day of ts names the dictionary. Columns ids, vals: include/hearth/model/columns.h;
-- attrs: include/hearth/model/sample_attrs.h.
CREATE TABLE hearth_data.profile (
    service_id int4 NOT NULL,
    series_id int4 NOT NULL,
    ts int8 NOT NULL,
    duration_ns int8 NOT NULL,
    period int8 NOT NULL,
    profile_no int8 NOT NULL,
    writer_id int4 NOT NULL,
    n_samples int4 NOT NULL,
    totals int8[] NOT NULL,
    ids bytea NOT NULL,
    vals bytea[] NOT NULL,
    attrs bytea
) PARTITION BY RANGE (ts);
ALTER TABLE hearth_data.profile ALTER ids SET STORAGE EXTERNAL;
ALTER TABLE hearth_data.profile ALTER vals SET STORAGE EXTERNAL;
-- service_id is included because every read names it: without it, reading totals would have to visit the heap (8 bytes a
-- row; 200 series x 1 h: 10 instead of 19 ms). series_id leads so that the plan does not depend on statistics: a leaf is
-- new every day, and with service_id in front an unanalysed one was read for the whole service.
CREATE INDEX profile_series_ts ON hearth_data.profile (series_id, ts) INCLUDE (service_id, totals);
