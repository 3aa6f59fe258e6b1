-- Instances and processes that agents reported. Small: they grow with what runs, not with what is profiled; those that
-- were not seen for `retain-agents` and that no task or policy names are removed. Times are milliseconds, as agents send them.

-- Names are at most 1024 bytes: they are part of keys.
CREATE TABLE hearth_data.instance (
    instance_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    service_id int4 NOT NULL REFERENCES hearth_data.service,
    name text NOT NULL,
    layer text NOT NULL,
    properties jsonb NOT NULL CHECK (jsonb_typeof(properties) = 'object'),
    first_seen int8 NOT NULL,
    last_seen int8 NOT NULL CHECK (last_seen >= first_seen),
    UNIQUE (service_id, name)
) WITH (fillfactor = 70);

-- process_id: SHA-256 of the process name and its instance's public id, as agents know it; two tenants may have the same.
CREATE TABLE hearth_data.process (
    service_id int4 NOT NULL REFERENCES hearth_data.service,
    process_id text NOT NULL CHECK (process_id ~ '^[0-9a-f]{64}$'),
    instance_id int4 NOT NULL REFERENCES hearth_data.instance ON DELETE CASCADE,
    name text NOT NULL,
    detect_type int2 NOT NULL CHECK (detect_type BETWEEN 0 AND 3), -- undefined, host, Kubernetes, virtual
    agent_id text NOT NULL, -- empty: none reported it
    labels text[] NOT NULL, -- sorted
    properties jsonb NOT NULL CHECK (jsonb_typeof(properties) = 'object'),
    can_be_profiled bool NOT NULL,
    first_seen int8 NOT NULL,
    last_seen int8 NOT NULL CHECK (last_seen >= first_seen),
    PRIMARY KEY (service_id, process_id)
) WITH (fillfactor = 70);
CREATE INDEX process_agent ON hearth_data.process (agent_id) WHERE agent_id <> '';
CREATE INDEX process_instance ON hearth_data.process (instance_id);
