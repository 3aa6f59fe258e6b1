-- Settings of clients, ad hoc profiles, recording rules. docs/decisions/0013-recording-rules.md has what makes the
-- counters of rules exact. All of it is small: none of these tables grows with the profiles that are pushed, so none has
-- a service_id (on Citus they are reference tables). Tenants are named, since they may have settings before they have profiles.

-- What clients keep for themselves (Drilldown: pluginSettings).
CREATE TABLE hearth_data.client_setting (
    tenant text NOT NULL,
    name text NOT NULL,
    value text NOT NULL,
    modified_at int8 NOT NULL, -- milliseconds, as the client said
    PRIMARY KEY (tenant, name)
);

-- Uploaded to be looked at, outside all services. payload: the bytes as they were uploaded.
CREATE TABLE hearth_data.adhoc_profile (
    tenant text NOT NULL,
    id text NOT NULL, -- begins with a ULID: ascending with time
    name text NOT NULL,
    uploaded_at int8 NOT NULL, -- milliseconds
    n_bytes int8 NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- A rule as it counts now: who changes what it counts makes a new row with the same id.
CREATE TABLE hearth_data.recording_rule (
    rule_no int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    id text NOT NULL,
    metric_name text NOT NULL,
    matchers text[] NOT NULL, -- selectors, ANDed
    group_by text[] NOT NULL,
    external_labels text[] NOT NULL, -- name, value, name, value
    has_function bool NOT NULL,
    function text NOT NULL, -- the total of which is counted
    generation int8 NOT NULL, -- raised by every change
    start_ns int8 NOT NULL, -- a whole minute: earlier profiles do not count
    UNIQUE (tenant, id)
);

-- How far a rule is. Written by the holder of the lease "builder" only, like the next two.
CREATE TABLE hearth_data.rule_state (
    rule_no int8 PRIMARY KEY,
    advanced_to int8 NOT NULL, -- a whole minute: every minute before it has been counted
    mark_done int8 NOT NULL, -- the last mark that was looked after
    kept_from int8 NOT NULL, -- buckets before it have no row any more and are not counted again
    n_series_dropped int8 NOT NULL -- sums of series beyond max-rule-series
) WITH (fillfactor = 50);

CREATE TABLE hearth_data.rule_counter (
    rule_no int8 NOT NULL,
    series_no int4 NOT NULL,
    labels text[] NOT NULL, -- name, value, name, value
    value numeric NOT NULL, -- a fleet's CPU nanoseconds of two weeks exceed 64 bits
    PRIMARY KEY (rule_no, series_no)
) WITH (fillfactor = 50);

-- What of a counter comes from the profiles of one bucket of 10 minutes: counting a bucket again adds only what is new.
CREATE TABLE hearth_data.rule_bucket (
    rule_no int8 NOT NULL,
    t0 int8 NOT NULL,
    series_nos int4[] NOT NULL,
    counted int8[] NOT NULL,
    PRIMARY KEY (rule_no, t0)
) WITH (fillfactor = 50);

-- Buckets to be counted again. Written by the transactions that build a bucket or fold late profiles into it, where the
-- tenant has rules; removed when all rules have looked after them.
CREATE TABLE hearth_data.rule_mark (
    mark_id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    t0 int8 NOT NULL
);
