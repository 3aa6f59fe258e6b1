-- Returns the runs of a task or with given ids, each with some of its profiles.
--
-- Indexes: task_schedule_task, or the unique key (tenant_id, schedule_id) of task_schedule; the
-- profiles by the primary key of task_stack_chunk.
--
-- $1 text tenant
-- $2 text task; empty: the runs are those of $3
-- $3 text[] schedules
-- $4 int8 maximum number of profiles of each run
SELECT d.schedule_no, d.service_id, d.schedule_id, d.task_id, d.process_id, p.name, i.name,
    d.start_at, d.end_at, coalesce(c.writers, '{}'), coalesce(c.numbers, '{}')
FROM hearth_data.task_schedule d
JOIN hearth_data.tenant t ON t.tenant_id = d.tenant_id AND t.name = $1
LEFT JOIN hearth_data.process p ON p.service_id = d.service_id AND p.process_id = d.process_id
LEFT JOIN hearth_data.instance i USING (instance_id)
LEFT JOIN LATERAL (
    SELECT array_agg(k.writer_id) AS writers, array_agg(k.profile_no) AS numbers
    FROM (
        SELECT writer_id, profile_no FROM hearth_data.task_stack_chunk
        WHERE service_id = d.service_id AND schedule_no = d.schedule_no AND writer_id > 0
        ORDER BY at, part LIMIT $4) k) c ON true
WHERE CASE WHEN $2 <> '' THEN d.task_id = $2 ELSE d.schedule_id = ANY ($3) END
ORDER BY d.start_at, d.schedule_id COLLATE "C"
