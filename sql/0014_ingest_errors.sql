-- Uploads that were refused, because many clients do not tell anyone. Equal errors share a row. Removed after
-- `retain-ingest-errors`; a tenant has at most `max-ingest-errors`.
CREATE TABLE hearth_data.ingest_error (
    tenant text NOT NULL,
    error_key int8 NOT NULL, -- hash of client, route, code, and the message without its numbers
    client text NOT NULL, -- its family, as in the metrics
    route text NOT NULL, -- path of the method or of the plain route
    code text NOT NULL,
    message text NOT NULL, -- of the latest upload, like the next two
    body_hash int8 NOT NULL, -- XXH3-64 of its first 4 KiB as sent
    n_bytes int8 NOT NULL, -- as sent
    n int8 NOT NULL CHECK (n > 0), -- uploads
    first_at int8 NOT NULL, -- milliseconds
    last_at int8 NOT NULL,
    PRIMARY KEY (tenant, error_key)
);
CREATE INDEX ingest_error_last ON hearth_data.ingest_error (last_at);

CREATE VIEW hearth.ingest_errors AS
SELECT 'epoch'::timestamptz + last_at * interval '1 millisecond' AS last_time,
       'epoch'::timestamptz + first_at * interval '1 millisecond' AS first_time,
       tenant,
       client,
       route,
       code,
       message,
       n AS uploads,
       n_bytes AS body_bytes,
       lpad(to_hex(body_hash), 16, '0') AS body_hash
FROM hearth_data.ingest_error;
COMMENT ON VIEW hearth.ingest_errors IS
    'Uploads that were refused. Errors that differ only in numbers share a row; its message, body_bytes and body_hash are those of the latest.';
