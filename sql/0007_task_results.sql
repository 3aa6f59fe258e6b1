-- What profiling tasks brought: stack traces of agents outside the process, and whole files. Removed after
-- `retain-tasks`. Times are milliseconds, as agents send them; a task need not have a row (hearth_data.task).

-- An agent names a process by its id only.
CREATE INDEX process_by_id ON hearth_data.process (process_id);

-- One run of a task on one process. Its service is the process's when the first data came; unknown then: the task's;
-- neither known: unknown_service. end_at only grows; whoever writes stack traces of a run holds its row's lock.
CREATE TABLE hearth_data.task_schedule (
    schedule_no int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id int4 NOT NULL REFERENCES hearth_data.tenant,
    service_id int4 NOT NULL REFERENCES hearth_data.service,
    schedule_id text NOT NULL CHECK (schedule_id ~ '^[0-9a-f]{64}$'), -- as SkyWalking's public protocol has it
    task_id text NOT NULL,
    process_id text NOT NULL,
    start_at int8 NOT NULL,
    end_at int8 NOT NULL CHECK (end_at >= start_at), -- of the last data
    UNIQUE (tenant_id, schedule_id)
) WITH (fillfactor = 70);
CREATE INDEX task_schedule_task ON hearth_data.task_schedule (task_id);
CREATE INDEX task_schedule_end ON hearth_data.task_schedule (end_at);

-- Stack traces of one run and flush. A flush may come in parts, and again: a part has what no part before it has.
-- payload: zstd of include/hearth/model/task_chunk.h. Each part is one ordinary profile, too: writer_id and profile_no
-- name it (0, 0: it repeated one of the last hour), once is_pushed says that it is stored.
CREATE TABLE hearth_data.task_stack_chunk (
    service_id int4 NOT NULL,
    schedule_no int8 NOT NULL,
    at int8 NOT NULL, -- when the agent flushed
    part int4 NOT NULL CHECK (part >= 0),
    kind int2 NOT NULL CHECK (kind BETWEEN 1 AND 2), -- on-CPU, off-CPU
    chunk_hash uuid NOT NULL,
    n_records int4 NOT NULL CHECK (n_records > 0),
    n_bytes int4 NOT NULL, -- inflated
    is_pushed bool NOT NULL,
    writer_id int4 NOT NULL,
    profile_no int8 NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (service_id, schedule_no, at, part)
);
ALTER TABLE hearth_data.task_stack_chunk ALTER payload SET STORAGE EXTERNAL;
CREATE INDEX task_stack_chunk_at ON hearth_data.task_stack_chunk (at);
-- Those whose server was lost between the chunk and its profile.
CREATE INDEX task_stack_chunk_left ON hearth_data.task_stack_chunk (at) WHERE NOT is_pushed;

-- A whole file of an instance. upload_id: a hash of task, instance, format and content, so what comes again is there.
CREATE TABLE hearth_data.task_upload (
    upload_no int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id int4 NOT NULL REFERENCES hearth_data.tenant,
    service_id int4 NOT NULL REFERENCES hearth_data.service,
    upload_id text NOT NULL CHECK (upload_id ~ '^[0-9a-f]{32}$'),
    task_id text NOT NULL,
    instance text NOT NULL, -- empty: the agent did not say which
    format text NOT NULL CHECK (format IN ('pprof', 'jfr')),
    n_bytes int8 NOT NULL CHECK (n_bytes > 0),
    received_at int8 NOT NULL,
    is_pushed bool NOT NULL, -- as an ordinary profile; JFR is not
    UNIQUE (tenant_id, upload_id)
);
CREATE INDEX task_upload_task ON hearth_data.task_upload (task_id);
CREATE INDEX task_upload_received ON hearth_data.task_upload (received_at);
CREATE INDEX task_upload_left ON hearth_data.task_upload (received_at) WHERE NOT is_pushed;

CREATE TABLE hearth_data.task_upload_piece (
    service_id int4 NOT NULL,
    upload_no int8 NOT NULL,
    piece int4 NOT NULL CHECK (piece >= 0),
    payload bytea NOT NULL, -- 1 MiB, the last one less
    PRIMARY KEY (service_id, upload_no, piece)
);
ALTER TABLE hearth_data.task_upload_piece ALTER payload SET STORAGE EXTERNAL;

-- Which segments of traces have samples in a Go program's profile: the samples are read from the upload.
CREATE TABLE hearth_data.task_go_segment (
    service_id int4 NOT NULL,
    upload_no int8 NOT NULL,
    segment_id text NOT NULL,
    n_samples int4 NOT NULL CHECK (n_samples > 0),
    PRIMARY KEY (service_id, upload_no, segment_id)
);
CREATE INDEX task_go_segment_id ON hearth_data.task_go_segment (segment_id);
