-- Spans of traces, and thread snapshots of traced requests.

-- What was recorded together: a SkyWalking segment, or (of OpenTelemetry) the spans of one trace in one export. The spans
-- are packed in one row: docs/decisions/0015-spans.md. Times are nanoseconds since the epoch. A key is a hash of an id
-- (hearth_trace_key): the same for a text of 32 hexadecimal digits and the 16 bytes that it means. What comes again has the
-- same primary key.
CREATE TABLE hearth_data.span_group (
    service_id int4 NOT NULL,
    start_at int8 NOT NULL, -- of the earliest span
    segment_key int8 NOT NULL,
    trace_key int8 NOT NULL,
    duration int8 NOT NULL CHECK (duration >= 0),
    n_spans int4 NOT NULL CHECK (n_spans > 0),
    kind int2 NOT NULL CHECK (kind BETWEEN 0 AND 4), -- of the first span: local, entry, exit, producer, consumer
    flags int2 NOT NULL CHECK (flags BETWEEN 0 AND 7), -- 1: ids are bytes, else texts; 2: has an error; 4: spans were left out
    trace_id bytea NOT NULL,
    segment_id bytea NOT NULL,
    instance text NOT NULL,
    endpoint text NOT NULL, -- name of the first span
    spans bytea NOT NULL, -- include/hearth/model/spans.h, plain (0) or in a zstd frame (1)
    PRIMARY KEY (service_id, start_at, segment_key)
) PARTITION BY RANGE (start_at);
ALTER TABLE hearth_data.span_group ALTER spans SET STORAGE EXTERNAL;
CREATE INDEX span_group_trace ON hearth_data.span_group (trace_key);
CREATE INDEX span_group_segment ON hearth_data.span_group (segment_key);

-- Segments of trace tasks that were imported: as in span_group, but they are no requests of the service that they name,
-- they begin at whatever time, and they go with the snapshots of their task.
CREATE TABLE hearth_data.task_segment (
    service_id int4 NOT NULL, -- of the task
    task_id text NOT NULL,
    segment_key int8 NOT NULL,
    start_at int8 NOT NULL,
    duration int8 NOT NULL CHECK (duration >= 0),
    n_spans int4 NOT NULL CHECK (n_spans > 0),
    kind int2 NOT NULL CHECK (kind BETWEEN 0 AND 4),
    flags int2 NOT NULL CHECK (flags BETWEEN 0 AND 7),
    trace_id bytea NOT NULL,
    segment_id bytea NOT NULL,
    service text NOT NULL, -- that the segment names
    instance text NOT NULL,
    endpoint text NOT NULL,
    received_at int8 NOT NULL, -- milliseconds
    spans bytea NOT NULL,
    PRIMARY KEY (service_id, task_id, segment_key, start_at)
);
ALTER TABLE hearth_data.task_segment ALTER spans SET STORAGE EXTERNAL;
CREATE INDEX task_segment_task ON hearth_data.task_segment (task_id);
CREATE INDEX task_segment_received ON hearth_data.task_segment (received_at);

-- Thread snapshots of one segment for a task that were stored together. Rows may overlap: an agent that sent some again
-- brought them in other company; who reads takes each number once. Times are milliseconds. Removed after `retain-tasks`.
CREATE TABLE hearth_data.task_snapshot (
    service_id int4 NOT NULL,
    task_id text NOT NULL,
    segment_key int8 NOT NULL,
    first_sequence int4 NOT NULL,
    content int8 NOT NULL, -- a hash of the snapshots: the same again is not stored twice
    segment_id text NOT NULL,
    last_sequence int4 NOT NULL CHECK (last_sequence >= first_sequence),
    n_snapshots int4 NOT NULL CHECK (n_snapshots > 0),
    first_at int8 NOT NULL,
    last_at int8 NOT NULL,
    received_at int8 NOT NULL,
    snapshots bytea NOT NULL, -- include/hearth/model/snapshot_trees.h, plain (0) or in a zstd frame (1)
    PRIMARY KEY (service_id, task_id, segment_key, first_sequence, content)
);
ALTER TABLE hearth_data.task_snapshot ALTER snapshots SET STORAGE EXTERNAL;
CREATE INDEX task_snapshot_task ON hearth_data.task_snapshot (task_id);
CREATE INDEX task_snapshot_segment ON hearth_data.task_snapshot (segment_key);
CREATE INDEX task_snapshot_received ON hearth_data.task_snapshot (received_at);
