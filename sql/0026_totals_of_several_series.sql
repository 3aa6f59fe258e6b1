-- An hour in which the series of a service have few profiles has one row of totals for several series, with series_id 0
-- (docs/decisions/0059-sparse-hours.md). Its ts and vals have the series one after the other; its totals have, of each
-- series, series_id << 32 | number of profiles, then the sum of each type. If each series has one profile, vals has no
-- bytes: the sums are the values. The view is as before, but hours are read from both kinds of rows.
CREATE OR REPLACE VIEW hearth.totals AS
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
    SELECT g.service_id, h.series_id, g.t0, interval '1 hour', h.n_profiles, h.totals, g.t0 + 3599999999999
    FROM hearth_data.hour_totals g
    JOIN hearth_data.roll_state r ON r.service_id = g.service_id
    CROSS JOIN LATERAL (
        SELECT g.series_id, g.n_profiles, g.totals WHERE g.series_id > 0
        UNION ALL
        SELECT (g.totals[i] >> 32)::int4, (g.totals[i] & 4294967295)::int4, g.totals[i + 1 : i + cardinality(g.vals)]
        FROM generate_series(1, cardinality(g.totals), cardinality(g.vals) + 1) i
        WHERE g.series_id = 0
    ) h
    WHERE g.totals IS NOT NULL AND g.t0 + 3600000000000 <= least(r.compacted_to, r.built_to)
    AND EXISTS (
        SELECT FROM generate_series(1, cardinality(r.absent), 4) i
        WHERE r.absent[i] = 3600000000000 AND g.t0 >= r.absent[i + 1] AND g.t0 < r.absent[i + 2])
    UNION ALL
    SELECT e.service_id, e.series_id, e.t0, interval '1 day', e.n_profiles, e.totals, e.t0 + 86399999999999
    FROM hearth_data.roll_1d e
    JOIN hearth_data.roll_state r ON r.service_id = e.service_id
    WHERE e.series_id > 0 AND e.t0 + 86400000000000 <= least(r.compacted_to, r.built_to)
    AND NOT EXISTS (
        SELECT FROM hearth_data.roll_1h f
        WHERE f.service_id = e.service_id AND f.series_id = e.series_id
        AND f.t0 >= e.t0 AND f.t0 < e.t0 + 86400000000000)
    AND NOT EXISTS (
        SELECT FROM hearth_data.hour_totals g, generate_series(1, cardinality(r.absent), 4) i
        WHERE g.service_id = e.service_id AND g.series_id IN (0, e.series_id) AND g.totals IS NOT NULL
        AND g.t0 >= e.t0 AND g.t0 < e.t0 + 86400000000000
        AND r.absent[i] = 3600000000000 AND g.t0 >= r.absent[i + 1] AND g.t0 < r.absent[i + 2]
        AND (g.series_id > 0 OR EXISTS (
            SELECT FROM generate_series(1, cardinality(g.totals), cardinality(g.vals) + 1) j
            WHERE (g.totals[j] >> 32)::int4 = e.series_id)))
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
