-- Who may call: tokens, users, sessions, grants; and the audit log. Written by hand through AccessService and by log-ins.
-- Times are milliseconds since the epoch; 0: never. Each server holds all rows but the audit log in memory and reads them
-- again when the version has changed.

-- One row. Each write locks it first, raises the version if it changes something, and commits: so versions become visible
-- in their order, and two writes never wait for each other in a circle. The last uses of credentials raise no version.
CREATE TABLE hearth_data.access_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version int8 NOT NULL
);
INSERT INTO hearth_data.access_clock (version) VALUES (1);

CREATE TABLE hearth_data.access_token (
    token_id text PRIMARY KEY,
    name text NOT NULL,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32), -- SHA-256 of the secret
    created_by text NOT NULL,
    created_at int8 NOT NULL,
    expires_at int8 NOT NULL,
    last_used_at int8 NOT NULL,
    last_used_from text NOT NULL -- address
);

CREATE TABLE hearth_data.access_user (
    name text PRIMARY KEY,
    password text NOT NULL, -- encoded argon2id; empty: no log-in by password
    created_by text NOT NULL,
    created_at int8 NOT NULL,
    password_at int8 NOT NULL,
    last_login_at int8 NOT NULL,
    is_disabled bool NOT NULL
);

CREATE TABLE hearth_data.access_session (
    hash bytea PRIMARY KEY CHECK (octet_length(hash) = 32), -- SHA-256 of the cookie's value
    subject text NOT NULL,
    groups text[] NOT NULL, -- subjects
    created_at int8 NOT NULL,
    last_used_at int8 NOT NULL,
    expires_at int8 NOT NULL,
    address text NOT NULL, -- of the log-in, like the next one
    agent text NOT NULL
);
CREATE INDEX access_session_subject ON hearth_data.access_session (subject);

-- Equal grants are found under the lock of the clock; a unique index could not hold long selectors.
CREATE TABLE hearth_data.access_grant (
    grant_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject text NOT NULL,
    tenant text NOT NULL, -- '*': all tenants
    role int4 NOT NULL, -- include/hearth/model/roles.def
    selector text NOT NULL, -- empty: not narrowed
    created_by text NOT NULL,
    created_at int8 NOT NULL
);
CREATE INDEX access_grant_subject ON hearth_data.access_grant (subject);

-- The audit log: rows are only added. Partitioned by month; months are dropped after `retain-audit`. The triggers also stop
-- the owner of the tables and superusers, unless they change or drop the triggers or tables themselves.
CREATE TABLE hearth_data.audit (
    audit_id int8 GENERATED ALWAYS AS IDENTITY,
    at int8 NOT NULL,
    tenant text NOT NULL, -- empty: the server as a whole
    subject text NOT NULL,
    address text NOT NULL,
    action text NOT NULL,
    object text NOT NULL,
    outcome text NOT NULL,
    message text NOT NULL,
    PRIMARY KEY (audit_id, at)
) PARTITION BY RANGE (at);
CREATE INDEX audit_at ON hearth_data.audit (at);
CREATE INDEX audit_tenant ON hearth_data.audit (tenant, audit_id);

CREATE FUNCTION hearth_data.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % of % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;

-- ALWAYS: also with session_replication_role = replica. PostgreSQL gives the trigger of rows to each partition; the one of
-- TRUNCATE is of this table alone, so hearthd gives it to each partition that it creates (server/store/pg/partitions.c).
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON hearth_data.audit
    FOR EACH ROW EXECUTE FUNCTION hearth_data.refuse_audit_change();
ALTER TABLE hearth_data.audit ENABLE ALWAYS TRIGGER audit_append_only;
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON hearth_data.audit
    FOR EACH STATEMENT EXECUTE FUNCTION hearth_data.refuse_audit_change();
ALTER TABLE hearth_data.audit ENABLE ALWAYS TRIGGER audit_no_truncate;
