-- Policies: when agents start profiling by themselves; and the metrics that they report for it. Times are milliseconds.

-- As agents are told it. A service without a row: none. Written with the row of policy_version, under the service's row lock.
-- targets: [{"kind": 1, "items": [{"monitor": 1, "threshold": 80, "period": 10, "count": 3, "uri_paths": [], "uri_regex": ""}]}]
CREATE TABLE hearth_data.policy (
    service_id int4 PRIMARY KEY REFERENCES hearth_data.service,
    targets jsonb NOT NULL CHECK (jsonb_typeof(targets) = 'array'),
    uuid text NOT NULL CHECK (uuid ~ '^[0-9a-f]{64}$'), -- SHA-256 of targets and observe
    version int8 NOT NULL CHECK (version > 0),
    modified_at int8 NOT NULL,
    modified_by text NOT NULL,
    observe bool NOT NULL -- agents get thresholds that cannot be reached
);

-- Every version, the newest `max-policy-versions` of a service. deleted: with it the service had none any more.
CREATE TABLE hearth_data.policy_version (
    service_id int4 NOT NULL REFERENCES hearth_data.service ON DELETE CASCADE,
    version int8 NOT NULL CHECK (version > 0),
    targets jsonb NOT NULL CHECK (jsonb_typeof(targets) = 'array'),
    uuid text NOT NULL,
    modified_at int8 NOT NULL,
    modified_by text NOT NULL,
    observe bool NOT NULL,
    deleted bool NOT NULL CHECK (NOT deleted OR targets = '[]'),
    PRIMARY KEY (service_id, version)
);

-- What a line of metrics is of. Removed when it had no value for `retain-monitors`.
CREATE TABLE hearth_data.monitor_line (
    line_id int8 GENERATED ALWAYS AS IDENTITY,
    service_id int4 NOT NULL REFERENCES hearth_data.service,
    fingerprint uuid NOT NULL, -- XXH3-128 of instance, process and uri, each with its length: they are too long for a key
    instance text NOT NULL,
    process text NOT NULL,
    monitor int2 NOT NULL CHECK (monitor BETWEEN 1 AND 5), -- hearth.v1.MonitorKind
    uri text NOT NULL CHECK (uri = '' OR monitor IN (4, 5)),
    last_day int4 NOT NULL, -- since the epoch, of its newest value
    PRIMARY KEY (service_id, line_id),
    UNIQUE (service_id, monitor, fingerprint)
) WITH (fillfactor = 70);

-- The values of a line within a minute, in the order in which they came. Agents look at every second, and say one value
-- each 5 s; of HTTP, all seconds that had requests, with one time. Partitioned by day, dropped after `retain-monitors`.
CREATE TABLE hearth_data.monitor_minute (
    service_id int4 NOT NULL,
    line_id int8 NOT NULL,
    minute int4 NOT NULL, -- since the epoch
    offsets int4[] NOT NULL CHECK (cardinality(offsets) > 0), -- milliseconds since the minute began
    vals float8[] NOT NULL CHECK (cardinality(vals) = cardinality(offsets)), -- as sent
    PRIMARY KEY (service_id, line_id, minute)
) PARTITION BY RANGE (minute);
