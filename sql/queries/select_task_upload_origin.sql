-- Returns the event that a pprof file counts and, if the file continues an earlier one, that file:
-- b, the latest earlier file of a task with the same event by the same instance, if both tasks were
-- delivered to it. b is dropped if the instance was told of a task with a lower cursor than it got
-- with the task of b: then it has restarted since. Imported tasks have no deliveries, so their
-- files continue no earlier file.
--
-- Indexes: the unique key (tenant_id, upload_id) of task_upload, then task_upload_task and
-- task_delivery_target.
--
-- $1 text tenant
-- $2 text upload
SELECT t.events[1], coalesce(b.upload_id, ''), coalesce(b.received_at, 0)
FROM hearth_data.tenant n
JOIN hearth_data.task_upload u ON u.tenant_id = n.tenant_id
JOIN hearth_data.task t ON t.task_id = u.task_id AND t.service_id = u.service_id
LEFT JOIN LATERAL (
    SELECT b.upload_id, b.received_at, bd.delivered_at, bd.cursor_at
    FROM hearth_data.task bt
    JOIN hearth_data.task_upload b ON b.task_id = bt.task_id
    JOIN hearth_data.task_delivery bd ON bd.task_id = b.task_id AND bd.target = b.instance
        AND bd.agent_id = ''
    WHERE bt.service_id = u.service_id AND bt.kind = t.kind AND bt.events = t.events
        AND b.service_id = u.service_id AND b.instance = u.instance AND b.upload_no < u.upload_no
        AND EXISTS (
            SELECT FROM hearth_data.task_delivery ud
            WHERE ud.task_id = u.task_id AND ud.target = u.instance AND ud.agent_id = '')
    ORDER BY b.upload_no DESC LIMIT 1) b
ON NOT EXISTS (
    SELECT FROM hearth_data.task_delivery x
    JOIN hearth_data.task xt ON xt.task_id = x.task_id AND xt.service_id = u.service_id
        AND xt.kind = t.kind
    WHERE x.target = u.instance AND x.agent_id = ''
        AND (x.cursor_at > b.cursor_at OR x.delivered_at > b.delivered_at)
        AND x.delivered_at <= u.received_at AND x.agent_cursor < b.cursor_at)
WHERE n.name = $1 AND u.upload_id = $2 AND u.format = 'pprof' AND t.kind = 6
