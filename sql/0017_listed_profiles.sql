-- Uploads as a list: what is read of compacted hours for it, and the ids of the API in SQL.

-- The rows of a segment without their samples, packed like payload (include/hearth/model/segment.h): reads of totals
-- and identities need a hundredth of the bytes. NULL in segments that older servers wrote.
ALTER TABLE hearth_data.segment ADD COLUMN heads bytea;
ALTER TABLE hearth_data.segment ALTER heads SET STORAGE EXTERNAL;

-- hearth.profiles.profile_id is the UUID that clients see. The layout of the UUID: include/hearth/model/profile_id.h.
CREATE FUNCTION hearth.profile_id(writer_id int4, profile_no int8) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT (lpad(to_hex(writer_id), 8, '0')
        || lpad(to_hex((profile_no >> 48) & 65535), 4, '0')
        || '8' || lpad(to_hex((profile_no >> 36) & 4095), 3, '0')
        || lpad(to_hex(((profile_no & 68719476735) << 26) | (-9223372036854775807 - 1)), 16, '0'))::uuid::text
$$;
COMMENT ON FUNCTION hearth.profile_id IS
    'The id of a profile as in the API, a UUID, of its writer and number in hearth_data.';

CREATE OR REPLACE VIEW hearth.profiles AS
SELECT 'epoch'::timestamptz + (p.ts / 1000) * interval '1 microsecond' AS "time",
       t.name AS tenant,
       v.name AS service,
       l.labels,
       k.profile_type,
       p.totals[k.i] AS value,
       p.n_samples,
       (p.duration_ns / 1000) * interval '1 microsecond' AS duration,
       p.period,
       hearth.profile_id(p.writer_id, p.profile_no) AS profile_id,
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
COMMENT ON COLUMN hearth.profiles.profile_id IS
    'Of the upload, as in the API (GetProfile, profile_ids): its rows share it.';

-- One row for each upload, of those that hearth.profiles shows. ts is a grouping column, so that a condition on it is
-- applied to the rows of the upload and finds the partitions.
CREATE VIEW hearth.uploads AS
SELECT 'epoch'::timestamptz + (u.ts / 1000) * interval '1 microsecond' AS "time",
       u.tenant,
       u.service,
       (SELECT coalesce(jsonb_object_agg(l.key, l.value), '{}')
        FROM (
            SELECT e.key, e.value
            FROM hearth.series s
            CROSS JOIN LATERAL jsonb_each_text(s.labels) e
            WHERE s.service_id = u.service_id AND s.series_id = ANY (u.series_ids)
            GROUP BY e.key, e.value
            HAVING count(*) = cardinality(u.series_ids)
        ) l) AS labels,
       u.profile_types,
       u.duration,
       u.profile_id,
       u.ts,
       u.service_id,
       u.series_ids
FROM (
    SELECT p.tenant, p.service, p.service_id, p.ts, p.profile_id, max(p.duration) AS duration,
           array_agg(DISTINCT p.series_id) AS series_ids, array_agg(DISTINCT p.profile_type) AS profile_types
    FROM hearth.profiles p
    GROUP BY p.tenant, p.service, p.service_id, p.ts, p.profile_id
) u;
COMMENT ON VIEW hearth.uploads IS
    'Each upload, from hearth.coverage.profiles_from on; hearthd lists earlier ones. An upload with profiles of several times has a row for each.';
COMMENT ON COLUMN hearth.uploads.labels IS 'Labels that all its series have.';
COMMENT ON COLUMN hearth.uploads.duration IS 'The longest of its profiles.';
COMMENT ON COLUMN hearth.uploads.profile_id IS 'As in the API: GetProfile, profile_ids.';
COMMENT ON COLUMN hearth.uploads.ts IS
    'time in nanoseconds since the epoch; compare this one (hearth.ns), it finds the partitions.';
COMMENT ON COLUMN hearth.uploads.series_ids IS 'Of hearth.series.';
