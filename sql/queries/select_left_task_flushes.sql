-- Returns parts of flushes that are not pushed yet, with the names that a flush gets when it is
-- stored (upsert_task_run.sql) and the time of the previous flush. If there are more than $4, these
-- are chosen at random: parts whose push fails each time must not hold up the others.
--
-- Indexes: task_stack_chunk_left, then primary keys and process_by_id.
--
-- $1 text tenant
-- $2 int8 first time of a flush in milliseconds
-- $3 int8 last time of a flush in milliseconds
-- $4 int8 maximum number of parts
WITH c AS MATERIALIZED (
    SELECT c.service_id, c.schedule_no, c.at, c.part, c.payload, d.schedule_id, d.task_id,
        d.process_id, d.start_at, d.tenant_id
    FROM hearth_data.task_stack_chunk c
    JOIN hearth_data.task_schedule d USING (schedule_no)
    JOIN hearth_data.tenant t ON t.tenant_id = d.tenant_id AND t.name = $1
    WHERE NOT c.is_pushed AND c.at BETWEEN $2 AND $3
    ORDER BY random() LIMIT $4)
SELECT c.service_id, c.schedule_no, c.at, c.part, c.payload, c.schedule_id, c.task_id,
    c.process_id, c.start_at, p.service, p.instance, p.process,
    (SELECT s.name FROM hearth_data.task k JOIN hearth_data.service s USING (service_id)
    WHERE k.task_id = c.task_id AND s.tenant_id = c.tenant_id),
    (SELECT coalesce(max(o.at), 0) FROM hearth_data.task_stack_chunk o
    WHERE o.service_id = c.service_id AND o.schedule_no = c.schedule_no AND o.at < c.at)
FROM c
LEFT JOIN LATERAL (
    SELECT s.name AS service, i.name AS instance, p.name AS process
    FROM hearth_data.process p
    JOIN hearth_data.service s USING (service_id)
    JOIN hearth_data.instance i USING (instance_id)
    WHERE p.process_id = c.process_id AND s.tenant_id = c.tenant_id LIMIT 1) p ON true
ORDER BY c.at
