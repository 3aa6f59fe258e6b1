-- Inserts the groups of a batch; stored ones are ignored. Groups with flag 8 (only_profiled) are
-- inserted only if their service has a trace task (kind 4) that runs, or ended within $15.
--
-- Indexes: the primary key of span_group for ON CONFLICT, task_service for the tasks.
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
-- $14 int8 now in milliseconds
-- $15 int8 time after the end of a task in milliseconds
INSERT INTO hearth_data.span_group (service_id, start_at, segment_key, trace_key, duration,
    n_spans, kind, flags, trace_id, segment_id, instance, endpoint, spans)
SELECT r.service_id, r.start_at, r.segment_key, r.trace_key, r.duration,
    r.n_spans, r.kind, r.flags & 7, r.trace_id, r.segment_id, r.instance, r.endpoint, r.spans
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS r (service_id, start_at,
    segment_key, trace_key, duration, n_spans, kind, flags, trace_id, segment_id, instance,
    endpoint, spans)
WHERE r.flags < 8
    OR r.service_id IN (
        SELECT t.service_id FROM hearth_data.task t
        WHERE t.kind = 4 AND t.start_at <= $14 AND t.start_at + t.duration + $15 >= $14)
ON CONFLICT DO NOTHING
