-- Services as their owners see them: who they belong to, whether they may be profiled, whether they were approved. A server
-- adds a row some seconds after it first saw the name in a pushed profile. Deleted by hand only.
CREATE TABLE hearth_data.application (
    tenant text NOT NULL,
    name_key uuid NOT NULL, -- XXH3-128 of the name (names may be longer than an index entry can be)
    name text NOT NULL,
    owner text NOT NULL DEFAULT '',
    description text NOT NULL DEFAULT '',
    profiling int4 NOT NULL DEFAULT 0 CHECK (profiling BETWEEN 0 AND 2), -- 0: as the rules say, 1: on, 2: off
    approved int4 NOT NULL CHECK (approved BETWEEN 0 AND 1),
    first_seen int8 NOT NULL, -- milliseconds; 0: made by hand, not seen yet
    last_seen int8 NOT NULL, -- raised about once a minute
    updated_by text NOT NULL DEFAULT '',
    updated_at int8 NOT NULL DEFAULT 0, -- milliseconds; 0: nobody has changed it
    PRIMARY KEY (tenant, name_key)
) WITH (fillfactor = 70);

-- Rules switch profiling for all series that match a selector. In order of their names; the last that matches counts.
CREATE TABLE hearth_data.application_rule (
    tenant text NOT NULL,
    name text NOT NULL,
    selector text NOT NULL,
    profiling int4 NOT NULL CHECK (profiling BETWEEN 1 AND 2), -- 1: on, 2: off
    updated_by text NOT NULL,
    updated_at int8 NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- One row. Raised in each transaction that changes what servers must know of the two tables.
CREATE TABLE hearth_data.application_clock (version int8 NOT NULL);
INSERT INTO hearth_data.application_clock VALUES (1);

CREATE VIEW hearth.applications AS
SELECT tenant,
       name,
       owner,
       description,
       CASE profiling WHEN 1 THEN 'on' WHEN 2 THEN 'off' END AS profiling,
       approved = 1 AS approved,
       'epoch'::timestamptz + nullif(first_seen, 0) * interval '1 millisecond' AS first_seen,
       'epoch'::timestamptz + nullif(last_seen, 0) * interval '1 millisecond' AS last_seen,
       updated_by,
       'epoch'::timestamptz + nullif(updated_at, 0) * interval '1 millisecond' AS updated_at
FROM hearth_data.application;
COMMENT ON VIEW hearth.applications IS
    'Services by tenant: owner, whether profiles are accepted (null: as the rules say), whether they were approved.';

DO $$
DECLARE
    relation text;
BEGIN
    FOREACH relation IN ARRAY ARRAY['application', 'application_rule'] LOOP
        EXECUTE format('CREATE POLICY entered ON hearth_data.%I USING'
            ' (tenant = ANY ((SELECT nullif(current_setting(''hearth.tenants'', true), '''')::text[])::text[]))', relation);
        EXECUTE format('ALTER TABLE hearth_data.%I ENABLE ROW LEVEL SECURITY', relation);
    END LOOP;
END
$$;

-- One row, a number that changes of any tenant raise.
CREATE POLICY everybody ON hearth_data.application_clock FOR SELECT USING (true);
CREATE POLICY everybody_raises ON hearth_data.application_clock FOR UPDATE USING (true);
ALTER TABLE hearth_data.application_clock ENABLE ROW LEVEL SECURITY;
