-- Inserts the groups of a batch; stored ones are ignored.
--
-- Index: the primary key of span_group for ON CONFLICT.
--
-- $1 int4[] service_id
-- $2 int8[] start_at
-- $3 int8[] segment_key
-- $4 int8[] trace_key
-- $5 int8[] duration
-- $6 int4[] n_spans
-- $7 int4[] kind
-- $8 int4[] flags
-- $9 bytea[] trace_id
-- $10 bytea[] segment_id
-- $11 text[] instance
-- $12 text[] endpoint
-- $13 bytea[] spans
INSERT INTO hearth_data.span_group (service_id, start_at, segment_key, trace_key, duration,
    n_spans, kind, flags, trace_id, segment_id, instance, endpoint, spans)
SELECT r.service_id, r.start_at, r.segment_key, r.trace_key, r.duration,
    r.n_spans, r.kind, r.flags, r.trace_id, r.segment_id, r.instance, r.endpoint, r.spans
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS r (service_id, start_at,
    segment_key, trace_key, duration, n_spans, kind, flags, trace_id, segment_id, instance,
    endpoint, spans)
ON CONFLICT DO NOTHING
