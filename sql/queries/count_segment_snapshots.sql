-- Returns each segment with snapshots of some tasks: their number, and the times of the first and
-- the last; how to find it in span_group, and its instance if it is of an imported task.
--
-- Indexes: task_snapshot_task, then the primary key of task_segment.
--
-- $1 text tenant
-- $2 text[] tasks
SELECT r.task_id, r.segment_id,
    coalesce(
        (SELECT g.instance FROM hearth_data.task_segment g
        WHERE g.service_id = r.service_id AND g.task_id = r.task_id
        AND g.segment_key = r.segment_key LIMIT 1),
        ''),
    r.n, r.first_at, r.last_at, r.service_id, r.segment_key
FROM (
    SELECT o.task_id, o.segment_id, o.segment_key, o.service_id, sum(o.n_snapshots)::int8 AS n,
        min(o.first_at) AS first_at, max(o.last_at) AS last_at
    FROM hearth_data.task_snapshot o
    JOIN hearth_data.service s USING (service_id)
    JOIN hearth_data.tenant t ON t.tenant_id = s.tenant_id AND t.name = $1
    WHERE o.task_id = ANY ($2)
    GROUP BY 1, 2, 3, 4) r
ORDER BY r.task_id COLLATE "C", r.first_at, r.segment_id COLLATE "C"
