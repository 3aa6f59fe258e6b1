-- Creates or extends the run of a flush of stack traces, and returns it with the names of its
-- process: one row, or no row if no service is known. p: the process; k: the service of the task;
-- w: the service of the run; n: the run.
--
-- Indexes: process_by_id, the primary key of task, and the unique key (tenant_id, schedule_id) of
-- task_schedule; the previous flush by the primary key of task_stack_chunk.
--
-- $1 text tenant
-- $2 text schedule
-- $3 text task
-- $4 text process
-- $5 int8 start in milliseconds
-- $6 int8 time of the flush in milliseconds
-- $7 int4 service of runs with unknown process and task; 0: none
WITH t AS (
    SELECT tenant_id FROM hearth_data.tenant WHERE name = $1),
p AS (
    SELECT p.service_id, s.name AS service, i.name AS instance, p.name AS process
    FROM hearth_data.process p
    JOIN hearth_data.service s USING (service_id)
    JOIN hearth_data.instance i USING (instance_id)
    WHERE p.process_id = $4 AND s.tenant_id = (SELECT tenant_id FROM t) LIMIT 1),
k AS (
    SELECT k.service_id, s.name AS service
    FROM hearth_data.task k
    JOIN hearth_data.service s USING (service_id)
    WHERE k.task_id = $3 AND s.tenant_id = (SELECT tenant_id FROM t)),
w AS (
    SELECT coalesce((SELECT service_id FROM p), (SELECT service_id FROM k), nullif($7, 0))
        AS service_id),
n AS (
    INSERT INTO hearth_data.task_schedule AS o
        (tenant_id, service_id, schedule_id, task_id, process_id, start_at, end_at)
    SELECT t.tenant_id, w.service_id, $2, $3, $4, $5, greatest($5, $6)
    FROM t, w WHERE w.service_id IS NOT NULL
    ON CONFLICT (tenant_id, schedule_id)
        DO UPDATE SET end_at = greatest(o.end_at, excluded.end_at)
    RETURNING schedule_no, service_id)
SELECT n.schedule_no, n.service_id, p.service, p.instance, p.process, k.service,
    (SELECT coalesce(max(c.at), 0) FROM hearth_data.task_stack_chunk c
    WHERE c.service_id = n.service_id AND c.schedule_no = n.schedule_no AND c.at < $6)
FROM n LEFT JOIN p ON true LEFT JOIN k ON true
