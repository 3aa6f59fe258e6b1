-- Estimates the bytes on disk of each service of a tenant, by tier, the largest service first; or
-- of each tenant, in the order in which they were created.
--
-- The size of a table, with all days, is shared out among the services of all tenants: heap and
-- TOAST by the sizes of the values of their rows, indexes by the number of their rows. So dead rows
-- and free space are shared out too, and the services of all tenants add up to the size of the
-- tables. Sizes of values are read without the values (pg_column_size does not fetch from TOAST); of
-- a table with a larger heap than $2 only a sample of its blocks is read, always the same blocks.
-- The numbers in the sums are the fixed bytes of a row: its header, its item pointer and its columns
-- of fixed length. Sequential reads: no index serves a whole table.
--
-- $1 text tenant; empty: all of them, with a row each
-- $2 int8 bytes of the heap of each table that are read; 0: all
-- $3 int4[] service_id of rows of select_data_disk.sql
-- $4 text[] tier
-- $5 text[] bytes
-- $6 text[] bytes that were read
WITH size AS MATERIALIZED (
    SELECT coalesce(p.relname, c.relname)::text AS name,
        sum(pg_table_size(c.oid)) AS stored, sum(pg_indexes_size(c.oid)) AS indexes,
        CASE WHEN $2::int8 > 0
            THEN coalesce(least(100, 100.0 * $2 / nullif(sum(pg_relation_size(c.oid)), 0)), 100)
            ELSE 100 END AS percent
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        LEFT JOIN pg_class p ON p.oid = i.inhparent
    WHERE c.relnamespace = 'hearth_data'::regnamespace AND c.relkind = 'r'
    GROUP BY 1),
weight AS (
    SELECT 'span_fresh' AS name, 'spans' AS tier, service_id, count(*) AS n,
        sum(44 + pg_column_size(associations)) AS bytes
    FROM hearth_data.span_fresh
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'span_fresh')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'original', 'originals', service_id, count(*),
        sum(76 + pg_column_size(name) + pg_column_size(payload))
    FROM hearth_data.original
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'original')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'series', 'other', service_id, count(*), sum(68 + pg_column_size(pair_ids))
    FROM hearth_data.series
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'series')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'series_hour', 'other', service_id, count(*), sum(52)
    FROM hearth_data.series_hour
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'series_hour')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'task_stack_chunk', 'other', service_id, count(*), sum(92 + pg_column_size(payload))
    FROM hearth_data.task_stack_chunk
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'task_stack_chunk')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'task_upload_piece', 'other', service_id, count(*), sum(44 + pg_column_size(payload))
    FROM hearth_data.task_upload_piece
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'task_upload_piece')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'task_segment', 'other', service_id, count(*), sum(100 + pg_column_size(spans))
    FROM hearth_data.task_segment
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'task_segment')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'task_snapshot', 'other', service_id, count(*), sum(100 + pg_column_size(snapshots))
    FROM hearth_data.task_snapshot
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'task_snapshot')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'network_sample', 'other', service_id, count(*), sum(100 + pg_column_size(payload))
    FROM hearth_data.network_sample
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'network_sample')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'network_request', 'other', service_id, count(*), sum(150 + pg_column_size(uri))
    FROM hearth_data.network_request
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'network_request')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'captured_event', 'other', service_id, count(*), sum(150 + pg_column_size(tags))
    FROM hearth_data.captured_event
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'captured_event')) REPEATABLE (0)
    GROUP BY service_id
UNION ALL
    SELECT 'monitor_minute', 'other', service_id, count(*),
        sum(44 + pg_column_size(offsets) + pg_column_size(vals))
    FROM hearth_data.monitor_minute
        TABLESAMPLE SYSTEM ((SELECT percent FROM size WHERE name = 'monitor_minute')) REPEATABLE (0)
    GROUP BY service_id),
share AS (
    SELECT s.service_id, s.tier, s.bytes, s.bytes * s.percent / 100 AS read FROM (
        SELECT w.service_id, w.tier, z.percent,
            z.stored * w.bytes / sum(w.bytes) OVER (PARTITION BY name)
                + z.indexes * w.n / sum(w.n) OVER (PARTITION BY name) AS bytes
        FROM weight w JOIN size z USING (name)) s
UNION ALL
    SELECT d.service_id, d.tier, d.bytes::numeric, d.read::numeric
    FROM unnest($3, $4, $5, $6) d (service_id, tier, bytes, read))
SELECT CASE WHEN $1 = '' THEN t.name ELSE s.name END, coalesce(sum(h.bytes), 0)::int8,
    coalesce(sum(h.bytes) FILTER (WHERE h.tier = 'profiles'), 0)::int8,
    coalesce(sum(h.bytes) FILTER (WHERE h.tier = 'segments'), 0)::int8,
    coalesce(sum(h.bytes) FILTER (WHERE h.tier = 'rollups'), 0)::int8,
    coalesce(sum(h.bytes) FILTER (WHERE h.tier = 'symbols'), 0)::int8,
    coalesce(sum(h.bytes) FILTER (WHERE h.tier = 'spans'), 0)::int8,
    coalesce(sum(h.bytes) FILTER (WHERE h.tier = 'originals'), 0)::int8,
    coalesce(sum(h.bytes) FILTER (WHERE h.tier = 'other'), 0)::int8,
    coalesce(sum(h.read), 0)::int8
FROM hearth_data.tenant t LEFT JOIN hearth_data.service s USING (tenant_id)
    LEFT JOIN share h USING (service_id)
WHERE $1 IN ('', t.name)
GROUP BY CASE WHEN $1 = '' THEN t.tenant_id ELSE s.service_id END, 1
HAVING $1 = '' OR count(h.bytes) > 0
ORDER BY CASE WHEN $1 = '' THEN -min(t.tenant_id) ELSE sum(h.bytes)::int8 END DESC,
    CASE WHEN $1 = '' THEN t.name ELSE s.name END COLLATE "C"
