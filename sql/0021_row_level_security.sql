-- The second wall between tenants (docs/decisions/0032-row-level-security.md): transactions that answer a request of a tenant
-- run as a role that sees only rows of the tenants that the transaction has entered. The owner of the tables sees all rows.
--
-- The role exists once per cluster and may have to be made by an administrator, so the policies name no role: they hold for
-- every role but the owner (and superusers). hearthd calls grant_tenant_role at each start.

-- From here to the end of the transaction only rows of these tenants are visible; of the tables of stored profiles only rows of
-- these services, as far as they belong to the tenants. A function, because its plans are kept with the connection: a transaction
-- enters before each small statement.
CREATE FUNCTION hearth_data.enter_tenants(names text[], services int4[], tenant_role text) RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    ids int4[] := ARRAY(SELECT t.tenant_id FROM hearth_data.tenant t WHERE t.name = ANY (names));
    visible int4[];
    ignored text; -- an assignment costs less than PERFORM
BEGIN
    IF cardinality(services) > 0 THEN
        visible := ARRAY(SELECT s.service_id FROM hearth_data.service s
            WHERE s.service_id = ANY (services) AND s.tenant_id = ANY (ids));
    END IF;
    ignored := set_config('hearth.tenants', names::text, true);
    ignored := set_config('hearth.tenant_ids', ids::text, true);
    ignored := set_config('hearth.service_id', coalesce(visible[1]::text, ''), true);
    ignored := set_config('hearth.service_ids', coalesce(visible::text, ''), true);
    ignored := set_config('role', tenant_role, true);
END
$$;

-- Gives the role what it needs: access to the tables that have a policy, not to their leaves, and to nothing else.
CREATE FUNCTION hearth_data.grant_tenant_role(tenant_role text) RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    relation regclass;
BEGIN
    IF NOT has_schema_privilege(tenant_role, 'hearth_data', 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA hearth_data TO %I', tenant_role);
    END IF;
    FOR relation IN
        SELECT DISTINCT c.oid FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE c.relnamespace = 'hearth_data'::regnamespace AND NOT (
            has_table_privilege(tenant_role, c.oid, 'SELECT') AND has_table_privilege(tenant_role, c.oid, 'INSERT')
            AND has_table_privilege(tenant_role, c.oid, 'UPDATE') AND has_table_privilege(tenant_role, c.oid, 'DELETE'))
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I', relation, tenant_role);
    END LOOP;
END
$$;

-- Leaves need no policy: the role reaches them through their parents only, and is granted nothing on them. Tables without a
-- policy are the server's own, and closed to the role: catalog_clock, ingest_batch, lease, migration, push_id, writer.

-- The settings are read by sub-selects, once for each statement and not for each row. Tables of stored profiles are the hot ones:
-- one comparison for each row of the first service that a read names, a look-up in a hash for others. Elsewhere EXISTS lets
-- PostgreSQL choose: a look-up by the primary key for few rows, a hash of the visible services for many. The inner tables of
-- EXISTS have policies themselves.
DO $$
DECLARE
    relation text;
BEGIN
    CREATE POLICY entered ON hearth_data.tenant USING
        (name = ANY ((SELECT nullif(current_setting('hearth.tenants', true), '')::text[])::text[]));

    FOREACH relation IN ARRAY ARRAY['adhoc_profile', 'client_setting', 'ingest_error', 'network_address', 'profile_upload',
        'recording_rule', 'rule_mark', 'scrape_target']
    LOOP
        EXECUTE format('CREATE POLICY entered ON hearth_data.%I USING'
            ' (tenant = ANY ((SELECT nullif(current_setting(''hearth.tenants'', true), '''')::text[])::text[]))', relation);
    END LOOP;

    FOREACH relation IN ARRAY ARRAY['agent_poll', 'captured_day', 'erasure', 'label_pair', 'series', 'series_hour', 'service',
        'shape', 'span_index', 'task_schedule', 'task_upload', 'tenant_setting']
    LOOP
        EXECUTE format('CREATE POLICY entered ON hearth_data.%I USING'
            ' (tenant_id = ANY ((SELECT nullif(current_setting(''hearth.tenant_ids'', true), '''')::int4[])::int4[]))', relation);
    END LOOP;

    FOREACH relation IN ARRAY ARRAY['captured_event', 'instance', 'monitor_line', 'monitor_minute', 'network_request',
        'network_sample', 'original', 'policy', 'policy_version', 'process', 'span_fresh', 'span_group', 'task',
        'task_go_segment', 'task_segment', 'task_snapshot', 'task_stack_chunk', 'task_upload_piece']
    LOOP
        EXECUTE format('CREATE POLICY entered ON hearth_data.%1$I USING'
            ' (EXISTS (SELECT 1 FROM hearth_data.service s WHERE s.service_id = %1$I.service_id))', relation);
    END LOOP;

    FOREACH relation IN ARRAY ARRAY['dict_chunk', 'hour_totals', 'profile', 'profile_late', 'roll_10m', 'roll_1d', 'roll_1h',
        'roll_state', 'segment', 'tombstone']
    LOOP
        EXECUTE format('CREATE POLICY entered ON hearth_data.%I USING'
            ' (service_id = (SELECT nullif(current_setting(''hearth.service_id'', true), '''')::int4) OR service_id IN'
            ' (SELECT unnest(nullif(current_setting(''hearth.service_ids'', true), '''')::int4[])))', relation);
    END LOOP;

    FOREACH relation IN ARRAY ARRAY['task_delivery', 'task_log'] LOOP
        EXECUTE format('CREATE POLICY entered ON hearth_data.%1$I USING'
            ' (EXISTS (SELECT 1 FROM hearth_data.task s WHERE s.task_id = %1$I.task_id))', relation);
    END LOOP;

    FOREACH relation IN ARRAY ARRAY['profile_upload_part', 'profile_upload_result'] LOOP
        EXECUTE format('CREATE POLICY entered ON hearth_data.%1$I USING'
            ' (EXISTS (SELECT 1 FROM hearth_data.profile_upload s WHERE s.upload_no = %1$I.upload_no))', relation);
    END LOOP;

    FOREACH relation IN ARRAY ARRAY['rule_bucket', 'rule_counter', 'rule_state'] LOOP
        EXECUTE format('CREATE POLICY entered ON hearth_data.%1$I USING'
            ' (EXISTS (SELECT 1 FROM hearth_data.recording_rule s WHERE s.rule_no = %1$I.rule_no))', relation);
    END LOOP;

    -- One row, a time: nobody's.
    CREATE POLICY everybody ON hearth_data.span_index_begin FOR SELECT USING (true);

    FOR relation IN
        SELECT DISTINCT c.oid::regclass::text FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE c.relnamespace = 'hearth_data'::regnamespace ORDER BY 1
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', relation);
    END LOOP;
END
$$;
