-- SQL for people: what an engineer joins with tables of his own in psql. docs/how-to/sql.md explains it.
--
-- Everything here only reads hearth_data, or is a copy of it (materialized, sample). Symbols and compacted hours are
-- compressed by hearthd, so PostgreSQL alone sees totals of them, not stack traces: `hearth sql --materialize` writes
-- those into hearth.sample.
--
-- Asked first, so that a role that may not create schemas can use one made for it.
DO $$
BEGIN
    IF to_regnamespace('hearth') IS NULL THEN
        CREATE SCHEMA hearth;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE insufficient_privilege USING MESSAGE = format(
        'the role may not create schema hearth: CREATE SCHEMA hearth AUTHORIZATION %I', current_user);
END
$$;
COMMENT ON SCHEMA hearth IS 'Profiles as SQL: views over what hearthd stores, and copies made by hearth sql --materialize.';

CREATE FUNCTION hearth.ns(at timestamptz) RETURNS int8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT (extract(epoch FROM at) * 1000000)::int8 * 1000 $$;
COMMENT ON FUNCTION hearth.ns IS
    'Nanoseconds since the epoch, as in the columns ts: WHERE ts >= hearth.ns(now() - interval ''1 hour'') reads only the days it needs, which a condition on time cannot.';

-- ---- series ----

CREATE VIEW hearth.series AS
SELECT t.name AS tenant,
       v.name AS service,
       l.labels,
       h.profile_types,
       s.service_id,
       s.series_id
FROM hearth_data.series s
JOIN hearth_data.service v ON v.service_id = s.service_id
JOIN hearth_data.tenant t ON t.tenant_id = s.tenant_id
JOIN hearth_data.shape h ON h.shape_id = s.shape_id
LEFT JOIN LATERAL (
    SELECT coalesce(jsonb_object_agg(p.name, p.value), '{}') || jsonb_build_object('service_name', v.name) AS labels
    FROM hearth_data.label_pair p
    WHERE p.pair_id = ANY (s.pair_ids)
) l ON true;
COMMENT ON VIEW hearth.series IS 'Label sets of each service. The profiles of a series carry one value for each of its profile_types.';
COMMENT ON COLUMN hearth.series.labels IS 'Name and value of its labels, and service_name: labels->>''pod''.';
COMMENT ON COLUMN hearth.series.profile_types IS 'name:type:unit:period_type:period_unit, in the order of the value columns.';

-- ---- profiles ----

-- What is still stored as rows, with one row for each value column.
CREATE VIEW hearth.profiles AS
SELECT 'epoch'::timestamptz + (p.ts / 1000) * interval '1 microsecond' AS "time",
       t.name AS tenant,
       v.name AS service,
       l.labels,
       k.profile_type,
       p.totals[k.i] AS value,
       p.n_samples,
       (p.duration_ns / 1000) * interval '1 microsecond' AS duration,
       p.period,
       p.writer_id::text || '-' || p.profile_no::text AS profile_id,
       p.ts,
       p.service_id,
       p.series_id
FROM (
    SELECT a.service_id, a.series_id, a.ts, a.duration_ns, a.period, a.writer_id, a.profile_no, a.n_samples, a.totals
    FROM hearth_data.profile a
    WHERE NOT EXISTS (
        SELECT FROM hearth_data.roll_state r WHERE r.service_id = a.service_id AND a.ts < r.compacted_to)
    UNION ALL
    SELECT b.service_id, b.series_id, b.ts, b.duration_ns, b.period, b.writer_id, b.profile_no, b.n_samples, b.totals
    FROM hearth_data.profile_late b
) p
JOIN hearth_data.series s ON s.service_id = p.service_id AND s.series_id = p.series_id
JOIN hearth_data.service v ON v.service_id = p.service_id
JOIN hearth_data.tenant t ON t.tenant_id = s.tenant_id
JOIN hearth_data.shape h ON h.shape_id = s.shape_id
CROSS JOIN LATERAL unnest(h.profile_types) WITH ORDINALITY AS k(profile_type, i)
LEFT JOIN LATERAL (
    SELECT coalesce(jsonb_object_agg(q.name, q.value), '{}') || jsonb_build_object('service_name', v.name) AS labels
    FROM hearth_data.label_pair q
    WHERE q.pair_id = ANY (s.pair_ids)
) l ON true
WHERE NOT EXISTS (
    SELECT FROM hearth_data.tombstone d
    WHERE d.service_id = p.service_id AND p.ts BETWEEN d.from_ts AND d.to_ts AND p.series_id = ANY (d.series_ids));
COMMENT ON VIEW hearth.profiles IS
    'Each stored profile and profile type, from hearth.coverage.profiles_from on. Earlier ones are compacted: their totals are in hearth.totals.';
COMMENT ON COLUMN hearth.profiles.value IS 'Sum over its samples, in the unit of the profile type.';
COMMENT ON COLUMN hearth.profiles.n_samples IS 'Distinct stack traces.';
COMMENT ON COLUMN hearth.profiles.ts IS 'time in nanoseconds since the epoch; compare this one (hearth.ns), it finds the partitions.';
COMMENT ON COLUMN hearth.profiles.profile_id IS 'Of the pushed profile: the rows that share it came in one push of one process.';

-- ---- totals ----

-- Totals at the finest that PostgreSQL can read: of each profile, then of hours, then of days. A block that a deletion
-- touches is left out until the builder has made it anew.
CREATE VIEW hearth.totals AS
SELECT 'epoch'::timestamptz + (p.ts / 1000) * interval '1 microsecond' AS "time",
       p.length AS resolution,
       t.name AS tenant,
       v.name AS service,
       l.labels,
       k.profile_type,
       p.totals[k.i] AS value,
       p.n_profiles,
       p.ts,
       p.service_id,
       p.series_id
FROM (
    SELECT a.service_id, a.series_id, a.ts, interval '0' AS length, 1 AS n_profiles, a.totals, a.ts AS last_ts
    FROM hearth_data.profile a
    WHERE NOT EXISTS (
        SELECT FROM hearth_data.roll_state r WHERE r.service_id = a.service_id AND a.ts < r.compacted_to)
    UNION ALL
    SELECT b.service_id, b.series_id, b.ts, interval '0', 1, b.totals, b.ts
    FROM hearth_data.profile_late b
    UNION ALL
    SELECT c.service_id, c.series_id, c.t0, interval '1 hour', c.n_profiles, c.totals, c.t0 + 3599999999999
    FROM hearth_data.roll_1h c
    JOIN hearth_data.roll_state r ON r.service_id = c.service_id
    WHERE c.series_id > 0 AND c.t0 + 3600000000000 <= least(r.compacted_to, r.built_to)
    UNION ALL
    SELECT e.service_id, e.series_id, e.t0, interval '1 day', e.n_profiles, e.totals, e.t0 + 86399999999999
    FROM hearth_data.roll_1d e
    JOIN hearth_data.roll_state r ON r.service_id = e.service_id
    WHERE e.series_id > 0 AND e.t0 + 86400000000000 <= least(r.compacted_to, r.built_to)
    AND NOT EXISTS (
        SELECT FROM hearth_data.roll_1h f
        WHERE f.service_id = e.service_id AND f.series_id = e.series_id
        AND f.t0 >= e.t0 AND f.t0 < e.t0 + 86400000000000)
) p
JOIN hearth_data.series s ON s.service_id = p.service_id AND s.series_id = p.series_id
JOIN hearth_data.service v ON v.service_id = p.service_id
JOIN hearth_data.tenant t ON t.tenant_id = s.tenant_id
JOIN hearth_data.shape h ON h.shape_id = s.shape_id
CROSS JOIN LATERAL unnest(h.profile_types) WITH ORDINALITY AS k(profile_type, i)
LEFT JOIN LATERAL (
    SELECT coalesce(jsonb_object_agg(q.name, q.value), '{}') || jsonb_build_object('service_name', v.name) AS labels
    FROM hearth_data.label_pair q
    WHERE q.pair_id = ANY (s.pair_ids)
) l ON true
WHERE NOT EXISTS (
    SELECT FROM hearth_data.tombstone d
    WHERE d.service_id = p.service_id AND d.from_ts <= p.last_ts AND d.to_ts >= p.ts AND p.series_id = ANY (d.series_ids));
COMMENT ON VIEW hearth.totals IS
    'Totals over the whole retention: of each profile (resolution 0) from hearth.coverage.profiles_from on, of hours before that, of days where hours are gone. Rows add up; none overlap.';
COMMENT ON COLUMN hearth.totals."time" IS 'Of the profile, or the beginning of the hour or day (UTC).';
COMMENT ON COLUMN hearth.totals.resolution IS '0: one profile; 1 hour, 1 day: the sum of n_profiles.';

CREATE VIEW hearth.coverage AS
SELECT t.name AS tenant,
       v.name AS service,
       greatest('epoch'::timestamptz + (r.compacted_to / 1000) * interval '1 microsecond', leaf.profile) AS profiles_from,
       leaf.hour AS hours_from,
       CASE WHEN r.compacted_to IS NOT NULL THEN
           'epoch'::timestamptz + (least(r.compacted_to, r.built_to) / 1000) * interval '1 microsecond'
       END AS hours_until,
       leaf.day AS days_from,
       v.service_id
FROM hearth_data.service v
JOIN hearth_data.tenant t ON t.tenant_id = v.tenant_id
LEFT JOIN LATERAL (
    SELECT q.service_id, q.built_to, CASE WHEN q.compacted_to > 0 THEN q.compacted_to END AS compacted_to
    FROM hearth_data.roll_state q
    WHERE q.service_id = v.service_id
) r ON true
CROSS JOIN (
    SELECT min(day) FILTER (WHERE parent = 'profile') AS profile,
           min(day) FILTER (WHERE parent = 'roll_1h') AS hour,
           min(day) FILTER (WHERE parent = 'roll_1d') AS day
    FROM (
        SELECT p.relname AS parent, to_date(right(c.relname, 8), 'YYYYMMDD')::timestamp AT TIME ZONE 'UTC' AS day
        FROM pg_catalog.pg_inherits i
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
        JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
        WHERE p.relnamespace = 'hearth_data'::regnamespace AND c.relname ~ '^(profile|roll_1h|roll_1d)_[0-9]{8}$'
    ) days
) leaf;
COMMENT ON VIEW hearth.coverage IS 'From when on each view has what, per service.';
COMMENT ON COLUMN hearth.coverage.profiles_from IS 'hearth.profiles, and resolution 0 of hearth.totals, hold everything from here on.';
COMMENT ON COLUMN hearth.coverage.hours_from IS 'hearth.totals has hours from this day on, until hours_until.';
COMMENT ON COLUMN hearth.coverage.hours_until IS 'Before profiles_from only while hours are being built anew; null: nothing is compacted yet.';
COMMENT ON COLUMN hearth.coverage.days_from IS 'hearth.totals has days from this day on, where it has no hours.';

-- ---- stack traces: copies that hearth sql --materialize makes ----

CREATE TABLE hearth.materialized (
    materialized_id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    selector text NOT NULL,
    profile_type text NOT NULL,
    from_time timestamptz NOT NULL,
    to_time timestamptz NOT NULL CHECK (to_time > from_time),
    step interval NOT NULL CHECK (step > '0'),
    made_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX materialized_selector ON hearth.materialized (selector, tenant);
COMMENT ON TABLE hearth.materialized IS
    'Which ranges hearth.sample holds, as of made_at. DELETE a row to give its space back; deletions in Hearth do not reach these copies.';
COMMENT ON COLUMN hearth.materialized.to_time IS 'Not included.';
COMMENT ON COLUMN hearth.materialized.step IS 'Samples are summed over steps of this length, beginning at from_time.';

CREATE TABLE hearth.sample (
    materialized_id int8 NOT NULL DEFAULT currval('hearth.materialized_materialized_id_seq')
        REFERENCES hearth.materialized ON DELETE CASCADE,
    "time" timestamptz NOT NULL,
    value int8 NOT NULL,
    stack text[] NOT NULL
);
CREATE INDEX sample_time ON hearth.sample (materialized_id, "time");
COMMENT ON TABLE hearth.sample IS 'Stack traces of materialized ranges: the sum of each over a step. Ask hearth.samples or hearth.top.';
COMMENT ON COLUMN hearth.sample.stack IS 'Function names, root first.';

-- The materialized range to answer from, or an error that says how to make it.
CREATE FUNCTION hearth.find_materialized(
    selector text, from_time timestamptz, to_time timestamptz, profile_type text, tenant text
) RETURNS int8
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    covering int8[];
    types text[];
    aligned int8;
    command text;
BEGIN
    SELECT array_agg(m.materialized_id ORDER BY m.made_at DESC, m.materialized_id DESC), array_agg(DISTINCT m.profile_type)
    INTO covering, types
    FROM hearth.materialized m
    WHERE m.selector = find_materialized.selector AND m.tenant = find_materialized.tenant
    AND (find_materialized.profile_type IS NULL OR m.profile_type = find_materialized.profile_type)
    AND m.from_time <= find_materialized.from_time AND m.to_time >= find_materialized.to_time;
    command := format('hearth sql --materialize %s --from %s --to %s%s%s --database-url URL',
        '''' || replace(selector, '''', '''\''''') || '''',
        to_char(from_time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        to_char(to_time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        ' --type ' || profile_type, CASE WHEN tenant <> 'anonymous' THEN ' --tenant ' || tenant ELSE '' END);
    IF covering IS NULL THEN
        RAISE EXCEPTION '% is not materialized from % to %', selector, from_time, to_time
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'run: ' || command;
    END IF;
    IF array_length(types, 1) > 1 THEN
        RAISE EXCEPTION '% is materialized for several profile types', selector
            USING ERRCODE = 'ambiguous_parameter', HINT = 'pass profile_type => one of ' || array_to_string(types, ', ');
    END IF;
    SELECT m.materialized_id INTO aligned
    FROM hearth.materialized m
    WHERE m.materialized_id = ANY (covering)
    AND mod(extract(epoch FROM find_materialized.from_time - m.from_time)::numeric, extract(epoch FROM m.step)::numeric) = 0
    AND mod(extract(epoch FROM find_materialized.to_time - m.from_time)::numeric, extract(epoch FROM m.step)::numeric) = 0
    ORDER BY m.made_at DESC, m.materialized_id DESC
    LIMIT 1;
    IF aligned IS NULL THEN
        RAISE EXCEPTION '% is materialized in steps that do not begin at % and end at %', selector, from_time, to_time
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'ask for whole steps (hearth.materialized.step), or run with a shorter --step: ' || command;
    END IF;
    RETURN aligned;
END
$$;
COMMENT ON FUNCTION hearth.find_materialized IS 'Which row of hearth.materialized covers the range; an error that says what to run when none does.';

CREATE FUNCTION hearth.samples(
    selector text, from_time timestamptz, to_time timestamptz, profile_type text DEFAULT NULL, tenant text DEFAULT 'anonymous'
) RETURNS TABLE ("time" timestamptz, stack text[], value int8)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    source int8 := hearth.find_materialized(selector, from_time, to_time, profile_type, tenant);
BEGIN
    RETURN QUERY
    SELECT s."time", s.stack, s.value
    FROM hearth.sample s
    WHERE s.materialized_id = source AND s."time" >= samples.from_time AND s."time" < samples.to_time;
END
$$;
COMMENT ON FUNCTION hearth.samples IS
    'Stack traces (root first) of a materialized range, from_time <= time < to_time, summed per step. The selector is the text that was materialized.';

CREATE FUNCTION hearth.top(
    selector text, from_time timestamptz, to_time timestamptz, n int DEFAULT 20, profile_type text DEFAULT NULL,
    tenant text DEFAULT 'anonymous'
) RETURNS TABLE (function text, self int8, total int8, self_percent numeric)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog
AS $$
    WITH stacks AS (
        SELECT s.stack, sum(s.value)::int8 AS value
        FROM hearth.samples(selector, from_time, to_time, profile_type, tenant) s
        GROUP BY s.stack
    ), functions AS (
        SELECT f.name, CASE WHEN f.name = k.stack[cardinality(k.stack)] THEN k.value ELSE 0 END AS self, k.value AS total
        FROM stacks k
        CROSS JOIN LATERAL (SELECT DISTINCT u.name FROM unnest(k.stack) AS u(name)) f
    )
    SELECT f.name, sum(f.self)::int8, sum(f.total)::int8,
           round(100 * sum(f.self) / nullif((SELECT sum(k.value) FROM stacks k), 0), 2)
    FROM functions f
    GROUP BY f.name
    ORDER BY 2 DESC, 3 DESC, 1
    LIMIT n
$$;
COMMENT ON FUNCTION hearth.top IS
    'Functions by self in a materialized range; a recursive function counts once in its total. The selector is the text that was materialized.';
