-- Returns rows that may have associations of bare ids: fresh rows, and rows of the span index,
-- which have service 0. One statement, so one snapshot: the builder moves associations, and none
-- may be missed or seen twice.
--
-- Fresh rows are read sequentially, and those that contain no key are excluded if there are keys;
-- OFFSET 0 prevents a join, because their number changes too fast for statistics. Rows of the index
-- are found by its primary key, in a function that keeps its plan.
--
-- $1 text tenant
-- $2 int4[] sizes, one for each bucket
-- $3 int4[] buckets
-- $4 int4 first day
-- $5 int4 last day
-- $6 bytea[] keys of 8 bytes; empty: return all fresh rows
WITH t AS MATERIALIZED (
    SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)
SELECT f.service_id, 0, 0, 0, f.associations
FROM (
    SELECT * FROM hearth_data.span_fresh e
    WHERE cardinality($6::bytea[]) = 0
        OR EXISTS (SELECT FROM unnest($6::bytea[]) k WHERE position(k IN e.associations) > 0)
    OFFSET 0) f
WHERE (SELECT s.tenant_id FROM hearth_data.service s WHERE s.service_id = f.service_id)
    = (SELECT tenant_id FROM t)
UNION ALL
SELECT 0, i.found_day, i.found_bits, i.found_bucket, i.found
FROM t, hearth_data.find_in_span_index(t.tenant_id, $2::int4[], $3::int4[], $4::int4, $5::int4) i
