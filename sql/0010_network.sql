-- What network tasks saw. Times are milliseconds, as agents send them. An id of a process is that of hearth_data.process,
-- whose row may be gone, or may never have come.

-- What a relation of two processes counted, at one end, in one flush (2 s). Only inserted. Partitioned by day, dropped after
-- `retain-network`. sample_key: a hash of the rest, so what comes again is there.
CREATE TABLE hearth_data.network_sample (
    service_id int4 NOT NULL,
    at int8 NOT NULL,
    sample_key int8 NOT NULL,
    instance text NOT NULL, -- that reported it
    source_id text NOT NULL, -- the client
    destination_id text NOT NULL, -- the server
    side int2 NOT NULL CHECK (side BETWEEN 1 AND 2), -- client, server: the end that counted
    component int4 NOT NULL, -- 49 http, 110 tcp, 129 https, 130 tls
    source_addresses text[] NOT NULL, -- of ends that no agent sees
    destination_addresses text[] NOT NULL,
    payload bytea NOT NULL, -- include/hearth/model/network_metrics.h
    PRIMARY KEY (service_id, at, sample_key)
) PARTITION BY RANGE (at);

-- Requests that agents sampled: slow ones, and those that ended in an error. Removed after `retain-network`.
-- request_id: a hash of the rest and the tenant.
CREATE TABLE hearth_data.network_request (
    service_id int4 NOT NULL,
    at int8 NOT NULL,
    request_id uuid NOT NULL,
    received_at int8 NOT NULL,
    instance text NOT NULL,
    source_id text NOT NULL,
    destination_id text NOT NULL,
    side int2 NOT NULL CHECK (side BETWEEN 1 AND 2),
    component int4 NOT NULL,
    reason int2 NOT NULL CHECK (reason BETWEEN 1 AND 3), -- slow, status_4xx, status_5xx
    trace_provider int2 NOT NULL CHECK (trace_provider BETWEEN 1 AND 2), -- SkyWalking, Zipkin
    trace_key int8 NOT NULL, -- hearth_trace_key of trace_id
    trace_id text NOT NULL,
    segment_id text NOT NULL, -- empty: not said
    span_id text NOT NULL,
    uri text NOT NULL, -- redacted
    latency_us int8 NOT NULL CHECK (latency_us >= 0),
    status int4 NOT NULL,
    is_ssl bool NOT NULL,
    PRIMARY KEY (service_id, at, request_id)
);
CREATE INDEX network_request_id ON hearth_data.network_request (request_id);
CREATE INDEX network_request_trace ON hearth_data.network_request (trace_key);
CREATE INDEX network_request_received ON hearth_data.network_request (received_at);

-- Bodies and system calls of sampled requests: personal data. Redacted and cut before they are stored, removed after
-- `retain-captured`. Times of events are nanoseconds.
CREATE TABLE hearth_data.captured_event (
    service_id int4 NOT NULL, -- that its tags name; else unknown_service
    trace_key int8 NOT NULL,
    event_key uuid NOT NULL, -- a hash of the rest: what comes again is there
    received_at int8 NOT NULL,
    instance text NOT NULL, -- that its tags name, or empty
    trace_provider int2 NOT NULL CHECK (trace_provider BETWEEN 1 AND 2),
    trace_id text NOT NULL,
    segment_id text NOT NULL,
    span_id text NOT NULL,
    event text NOT NULL,
    start_at int8 NOT NULL,
    end_at int8 NOT NULL,
    n_redacted int4 NOT NULL,
    n_cut int8 NOT NULL, -- bytes that were left out
    tags bytea NOT NULL, -- names and values, packed; plain (0) or in a zstd frame (1)
    PRIMARY KEY (service_id, trace_key, event_key)
);
ALTER TABLE hearth_data.captured_event ALTER tags SET STORAGE EXTERNAL;
CREATE INDEX captured_event_trace ON hearth_data.captured_event (trace_key);
CREATE INDEX captured_event_received ON hearth_data.captured_event (received_at);

-- How much a tenant's agents captured on a day, and what did not fit `max-captured-day-bytes`.
CREATE TABLE hearth_data.captured_day (
    tenant_id int4 NOT NULL REFERENCES hearth_data.tenant,
    day int4 NOT NULL, -- since the epoch
    n_bytes int8 NOT NULL CHECK (n_bytes >= 0),
    n_dropped int8 NOT NULL CHECK (n_dropped >= 0), -- events
    PRIMARY KEY (tenant_id, day)
) WITH (fillfactor = 50);

-- What addresses outside are called.
CREATE TABLE hearth_data.network_address (
    tenant text NOT NULL,
    address text NOT NULL, -- ip or ip:port
    name text NOT NULL,
    PRIMARY KEY (tenant, address)
);
