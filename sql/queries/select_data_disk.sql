-- Estimates the bytes on disk of each service and tier in the tables of data, for all tenants; and
-- how many of them were read. select_service_disk.sql adds those in the catalogue, and says how the
-- size of a table is shared out. As text: the numbers are summed there without rounding.
--
-- Bytes on other nodes are known with the indexes only, so they are all shared out by the sizes of values.
--
-- $1 int8 bytes of the heap of each table that are read; 0: all
-- $2 int8[] tables, by oid, that have bytes on other nodes
-- $3 int8[] these bytes
WITH size AS MATERIALIZED (
    SELECT coalesce(p.relname, c.relname)::text AS name,
        sum(pg_table_size(c.oid) + coalesce(r.n_bytes, 0)) AS stored, sum(pg_indexes_size(c.oid)) AS indexes,
        CASE WHEN $1::int8 > 0
            THEN coalesce(least(100, 100.0 * $1 / nullif(sum(pg_relation_size(c.oid)
                + coalesce(r.n_bytes, 0)), 0)), 100)
            ELSE 100 END AS percent
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        LEFT JOIN pg_class p ON p.oid = i.inhparent
        LEFT JOIN unnest($2::int8[], $3::int8[]) AS r (relation, n_bytes) ON r.relation = c.oid::int8
    WHERE c.relnamespace = 'hearth_data'::regnamespace AND c.relkind = 'r'
    GROUP BY 1),
weight AS (
    SELECT 'profile' AS name, 'profiles' AS tier, service_id, count(*) AS n,
        sum(80 + pg_column_size(totals) + pg_column_size(ids) + pg_column_size(vals)
            + coalesce(pg_column_size(attrs), 0)) AS bytes
    FROM hearth_data.profile
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'profile')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'profile_late', 'profiles', service_id, count(*),
        sum(80 + pg_column_size(totals) + pg_column_size(ids) + pg_column_size(vals)
            + coalesce(pg_column_size(attrs), 0))
    FROM hearth_data.profile_late
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'profile_late')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'segment', 'segments', service_id, count(*),
        sum(60 + pg_column_size(series_ids) + pg_column_size(payload))
    FROM hearth_data.segment
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'segment')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'roll_10m', 'rollups', service_id, count(*),
        sum(60 + pg_column_size(totals) + coalesce(pg_column_size(members), 0)
            + pg_column_size(ids) + pg_column_size(vals))
    FROM hearth_data.roll_10m
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'roll_10m')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'roll_1h', 'rollups', service_id, count(*),
        sum(60 + pg_column_size(totals) + coalesce(pg_column_size(members), 0)
            + pg_column_size(ids) + pg_column_size(vals))
    FROM hearth_data.roll_1h
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'roll_1h')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'roll_1d', 'rollups', service_id, count(*),
        sum(60 + pg_column_size(totals) + coalesce(pg_column_size(members), 0)
            + pg_column_size(ids) + pg_column_size(vals))
    FROM hearth_data.roll_1d
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'roll_1d')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'hour_totals', 'rollups', service_id, count(*),
        sum(56 + pg_column_size(ts) + pg_column_size(vals))
    FROM hearth_data.hour_totals
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'hour_totals')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'dict_chunk', 'symbols', service_id, count(*), sum(52 + pg_column_size(payload))
    FROM hearth_data.dict_chunk
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'dict_chunk')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'span_group', 'spans', service_id, count(*),
        sum(76 + pg_column_size(trace_id) + pg_column_size(segment_id) + pg_column_size(instance)
            + pg_column_size(endpoint) + pg_column_size(spans))
    FROM hearth_data.span_group
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'span_group')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'push_id', 'other', service_id, count(*), sum(60)
    FROM hearth_data.push_id
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'push_id')) REPEATABLE (0)
    GROUP BY service_id),
share AS (
    SELECT w.service_id, w.tier, z.percent,
        z.stored * w.bytes / sum(w.bytes) OVER (PARTITION BY name)
            + z.indexes * w.n / sum(w.n) OVER (PARTITION BY name) AS bytes
    FROM weight w JOIN size z USING (name))
SELECT service_id, tier, sum(bytes)::text, sum(bytes * percent / 100)::text
FROM share GROUP BY 1, 2
