-- Inserts the snapshots of one tenant, a row for each task and segment; stored ones are ignored.
-- Rows of unknown tasks are dropped, and rows of segments that already have $13 snapshots.
--
-- Indexes: the primary keys of task and task_snapshot.
--
-- $1 text tenant
-- $2 text[] task_id
-- $3 text[] segment_id
-- $4 int8[] segment_key
-- $5 int4[] first_sequence
-- $6 int4[] last_sequence
-- $7 int4[] n_snapshots
-- $8 int8[] first_at
-- $9 int8[] last_at
-- $10 int8[] content
-- $11 bytea[] snapshots
-- $12 int8 now in milliseconds
-- $13 int8 limit of snapshots of a segment; 0: no limit
INSERT INTO hearth_data.task_snapshot (service_id, task_id, segment_id, segment_key,
    first_sequence, last_sequence, n_snapshots, first_at, last_at, content, snapshots, received_at)
SELECT t.service_id, r.*, $12
FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS r (task_id, segment_id, segment_key,
    first_sequence, last_sequence, n_snapshots, first_at, last_at, content, snapshots)
JOIN hearth_data.task t ON t.task_id = r.task_id
JOIN hearth_data.service s ON s.service_id = t.service_id
JOIN hearth_data.tenant n ON n.tenant_id = s.tenant_id AND n.name = $1
WHERE $13 = 0
    OR (SELECT coalesce(sum(o.n_snapshots), 0) FROM hearth_data.task_snapshot o
        WHERE o.service_id = t.service_id AND o.task_id = r.task_id
        AND o.segment_key = r.segment_key) < $13
ON CONFLICT DO NOTHING
