-- Returns parts of flushes that are not pushed yet, the oldest first, with the names that a flush
-- gets when it is stored (upsert_task_run.sql) and the time of the previous flush.
--
-- Indexes: task_stack_chunk_left, then primary keys and process_by_id.
--
-- $1 text tenant
-- $2 int8 first time of a flush in milliseconds
-- $3 int8 last time of a flush in milliseconds
-- $4 int8 maximum number of parts
SELECT c.service_id, c.schedule_no, c.at, c.part, c.payload, d.schedule_id, d.task_id,
    d.process_id, d.start_at, p.service, p.instance, p.process,
    (SELECT s.name FROM hearth_data.task k JOIN hearth_data.service s USING (service_id)
    WHERE k.task_id = d.task_id AND s.tenant_id = d.tenant_id),
    (SELECT coalesce(max(o.at), 0) FROM hearth_data.task_stack_chunk o
    WHERE o.service_id = c.service_id AND o.schedule_no = c.schedule_no AND o.at < c.at)
FROM hearth_data.task_stack_chunk c
JOIN hearth_data.task_schedule d USING (schedule_no)
JOIN hearth_data.tenant t ON t.tenant_id = d.tenant_id AND t.name = $1
LEFT JOIN LATERAL (
    SELECT s.name AS service, i.name AS instance, p.name AS process
    FROM hearth_data.process p
    JOIN hearth_data.service s USING (service_id)
    JOIN hearth_data.instance i USING (instance_id)
    WHERE p.process_id = d.process_id AND s.tenant_id = d.tenant_id LIMIT 1) p ON true
WHERE NOT c.is_pushed AND c.at BETWEEN $2 AND $3
ORDER BY c.at LIMIT $4
