-- The bytes on disk of each tier: its tables with indexes and TOAST. Partitions count with the table that they are
-- parts of, tables without a tier as "other". Reads the catalogue of PostgreSQL only, by its indexes.
--
-- $1 int8[] tables, by oid, that have bytes on other nodes
-- $2 int8[] these bytes
SELECT coalesce(tier.name, 'other'),
    coalesce(sum(pg_total_relation_size(part.oid) + coalesce(remote.n_bytes, 0)), 0)::int8
FROM pg_class part
JOIN pg_class whole ON whole.oid = coalesce(pg_partition_root(part.oid), part.oid)
LEFT JOIN (
    VALUES ('profile', 'profiles'),
           ('profile_late', 'profiles'),
           ('segment', 'segments'),
           ('roll_10m', '10m'),
           ('roll_1h', '1h'),
           ('roll_1d', '1d'),
           ('hour_totals', 'totals'),
           ('dict_chunk', 'dictionaries'),
           ('shape', 'dictionaries'),
           ('span_group', 'spans'),
           ('span_fresh', 'spans'),
           ('span_index', 'spans'),
           ('span_index_begin', 'spans'),
           ('original', 'originals')
) AS tier (relation, name) ON tier.relation = whole.relname
LEFT JOIN unnest($1::int8[], $2::int8[]) AS remote (relation, n_bytes)
    ON remote.relation = part.oid::int8
WHERE part.relnamespace = 'hearth_data'::regnamespace AND part.relkind = 'r'
GROUP BY 1
