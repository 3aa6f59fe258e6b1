-- Files that people upload: received in parts, parsed later by any server (docs/decisions/0025-uploads.md). Kept for
-- `retain-uploads`. Times are milliseconds since the epoch unless noted; tenants by name, because a tenant without
-- profiles has no row in hearth_data.tenant.
CREATE TABLE hearth_data.profile_upload (
    upload_no int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    upload_id text NOT NULL CHECK (upload_id ~ '^[0-9a-f]{32}$'), -- random
    state int4 NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 4), -- receiving, queued, parsing, done, failed
    -- As the person said:
    file_name text NOT NULL,
    format text NOT NULL, -- empty: detected
    label_names text[] NOT NULL,
    label_values text[] NOT NULL,
    from_at int8 NOT NULL, -- ns; 0: the time of the file
    until_at int8 NOT NULL, -- ns; 0: the duration of the file
    sample_rate int8 NOT NULL, -- Hz; 0: unknown
    n_bytes int8 NOT NULL CHECK (n_bytes > 0),
    part_bytes int4 NOT NULL CHECK (part_bytes > 0),
    sha256 text NOT NULL, -- hex; empty: not known yet
    created_at int8 NOT NULL,
    queued_at int8 NOT NULL DEFAULT 0,
    ended_at int8 NOT NULL DEFAULT 0,
    -- The work. due_at: queued: not claimed before; parsing: end of the lease, extended while the server lives.
    due_at timestamptz NOT NULL DEFAULT now(),
    claim int4 NOT NULL DEFAULT 0, -- counts claims; the holder of a lease names it with each write
    n_lost int4 NOT NULL DEFAULT 0, -- claims whose server was lost
    storing_at int8 NOT NULL DEFAULT 0, -- begin of the first push that is not known to be acknowledged; 0: there is none
    n_profiles int8 NOT NULL DEFAULT 0,
    n_samples int8 NOT NULL DEFAULT 0,
    n_settled int8 NOT NULL DEFAULT 0, -- profiles that were stored, were empty or were refused
    n_stored int8 NOT NULL DEFAULT 0,
    n_refused int8 NOT NULL DEFAULT 0,
    dropped text NOT NULL DEFAULT '', -- as the header hearth-dropped
    reason text NOT NULL DEFAULT '', -- failed: why; queued: why it is tried again
    UNIQUE (tenant, upload_id)
) WITH (fillfactor = 70);
CREATE INDEX profile_upload_due ON hearth_data.profile_upload (due_at) WHERE state IN (1, 2);
CREATE INDEX profile_upload_created ON hearth_data.profile_upload (created_at);

CREATE TABLE hearth_data.profile_upload_part (
    upload_no int8 NOT NULL REFERENCES hearth_data.profile_upload ON DELETE CASCADE,
    part int4 NOT NULL CHECK (part >= 0),
    n_bytes int4 NOT NULL,
    received_at int8 NOT NULL,
    payload bytea NOT NULL, -- part_bytes, the last part less
    PRIMARY KEY (upload_no, part)
);
ALTER TABLE hearth_data.profile_upload_part ALTER payload SET STORAGE EXTERNAL;

-- What became of an upload: a row for each profile type of each profile, in the order of the file; at most 1,000 profiles.
CREATE TABLE hearth_data.profile_upload_result (
    upload_no int8 NOT NULL REFERENCES hearth_data.profile_upload ON DELETE CASCADE,
    profile int4 NOT NULL, -- counts the profiles of the file from 0
    type int4 NOT NULL, -- counts its types from 0
    profile_type text NOT NULL,
    writer_id int4 NOT NULL, -- of the stored profile; 0: an earlier attempt stored it, or nothing was left of it
    profile_no int8 NOT NULL,
    n_samples int8 NOT NULL,
    total int8 NOT NULL,
    PRIMARY KEY (upload_no, profile, type)
);
