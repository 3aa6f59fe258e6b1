-- The rows of the span index in which keys may be: of each leaf and each (size, bucket), by the primary key.
--
-- A function, for its plan is kept with the connection: planning all leaves costs more than to look into them. STABLE, so that it
-- sees the snapshot of the statement that calls it, which reads span_fresh as well. Only index probes, whatever the statistics of a
-- leaf that was made a minute ago say. The days are said of x, too: other leaves are not even opened. A leaf that is being
-- dropped has its day at the end of its name, too.
CREATE FUNCTION hearth_data.find_in_span_index(
    of_tenant int4, sizes int4[], buckets int4[], from_day int4, to_day int4)
    RETURNS TABLE (found_day int4, found_bits int4, found_bucket int4, found bytea)
    LANGUAGE plpgsql STABLE ROWS 100
    SET search_path = pg_catalog
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
AS $$
BEGIN
    RETURN QUERY
    SELECT d.day, q.bits, q.bucket, i.associations
    FROM (
        SELECT to_date(right(c.relname, 8), 'YYYYMMDD') - date '1970-01-01' AS day
        FROM pg_catalog.pg_inherits l JOIN pg_catalog.pg_class c ON c.oid = l.inhrelid
        WHERE l.inhparent = 'hearth_data.span_index'::regclass OFFSET 0
    ) d, unnest(sizes, buckets) q (bits, bucket), LATERAL (
        SELECT x.associations FROM hearth_data.span_index x
        WHERE x.tenant_id = of_tenant AND x.day = d.day AND x.bits = q.bits AND x.bucket = q.bucket
        AND x.day BETWEEN from_day AND to_day OFFSET 0
    ) i
    WHERE d.day BETWEEN from_day AND to_day;
END
$$;
