-- Profiling tasks, who was told of them, and what agents said. Removed `retain-tasks` after their end, with their results.
-- Times are milliseconds, as agents send them.

CREATE TABLE hearth_data.task (
    task_id text PRIMARY KEY, -- opaque to agents; no two tenants share one
    service_id int4 NOT NULL REFERENCES hearth_data.service,
    kind int2 NOT NULL CHECK (kind BETWEEN 1 AND 6), -- hearth.v1.TaskKind
    origin int2 NOT NULL CHECK (origin BETWEEN 1 AND 3), -- hearth.v1.TaskOrigin
    instance text CHECK (kind <> 3 OR instance IS NOT NULL),
    process_id text,
    process text,
    labels text[] NOT NULL,
    instances text[] NOT NULL,
    endpoint text NOT NULL CHECK (kind <> 4 OR endpoint <> ''),
    events text[] NOT NULL,
    exec_args text NOT NULL,
    start_at int8 NOT NULL CHECK (start_at > 0),
    duration int8 NOT NULL CHECK (duration > 0),
    created_at int8 NOT NULL,
    updated_at int8 NOT NULL CHECK (updated_at >= created_at), -- later than created_at: it was kept alive
    cancelled_at int8,
    min_duration int4 NOT NULL CHECK (min_duration >= 0),
    dump_period int4 NOT NULL CHECK (dump_period >= 0),
    max_samples int4 NOT NULL CHECK (max_samples >= 0),
    sampling jsonb, -- rules of a network task, as agents are given them
    causes jsonb CHECK (causes IS NULL OR jsonb_typeof(causes) = 'array'), -- why a policy started it
    extended_at int8 -- of the last keep-alive
);
CREATE INDEX task_service ON hearth_data.task (service_id, created_at);
-- What may still be handed out.
CREATE INDEX task_end ON hearth_data.task (service_id, (start_at + duration)) WHERE origin = 1 AND cancelled_at IS NULL;
CREATE INDEX task_start ON hearth_data.task (start_at);

-- A task was handed out: to an agent for one process, or to an instance. cursor_at is the time that the command carried:
-- it is said again until the agent's cursor has passed it, and never after (docs/decisions/0014-task-delivery.md).
CREATE TABLE hearth_data.task_delivery (
    task_id text NOT NULL REFERENCES hearth_data.task ON DELETE CASCADE,
    target text NOT NULL, -- the process id; or the instance
    agent_id text NOT NULL, -- of the agent that was told; empty: the instance itself
    cursor_at int8 NOT NULL,
    task_updated_at int8 NOT NULL, -- the task's updated_at that was handed out: a later one is handed out again
    delivered_at int8 NOT NULL, -- first
    confirmed_at int8, -- the agent asked with a cursor that had passed it: it has the command
    PRIMARY KEY (task_id, target, agent_id)
);
CREATE INDEX task_delivery_agent ON hearth_data.task_delivery (agent_id, cursor_at) WHERE agent_id <> '';
CREATE INDEX task_delivery_target ON hearth_data.task_delivery (target);
CREATE INDEX task_delivery_open ON hearth_data.task_delivery (agent_id, target) WHERE confirmed_at IS NULL;

-- What happened, an entry for each instance (or process) and event.
CREATE TABLE hearth_data.task_log (
    task_id text NOT NULL REFERENCES hearth_data.task ON DELETE CASCADE,
    instance text NOT NULL,
    process_id text NOT NULL, -- empty: the instance
    event int2 NOT NULL CHECK (event BETWEEN 1 AND 4), -- hearth.v1.TaskEvent
    at int8 NOT NULL, -- first; last_at: when it came again
    last_at int8 NOT NULL CHECK (last_at >= at),
    message text NOT NULL,
    PRIMARY KEY (task_id, instance, process_id, event)
);

-- When agents asked for tasks of a kind: tells "no agent asked" from "no process matches". A row for each time without a
-- gap of 10 minutes; `at` is written once a minute at most.
CREATE TABLE hearth_data.agent_poll (
    tenant_id int4 NOT NULL REFERENCES hearth_data.tenant,
    service_id int4 NOT NULL, -- 0: eBPF agents, which report processes of many
    kind int2 NOT NULL CHECK (kind BETWEEN 1 AND 6 AND (kind = 1) = (service_id = 0)), -- 1: all kinds of eBPF agents
    instance text NOT NULL, -- or the agent's id
    since int8 NOT NULL,
    at int8 NOT NULL CHECK (at >= since),
    PRIMARY KEY (tenant_id, service_id, kind, instance, since)
) WITH (fillfactor = 50);
CREATE INDEX agent_poll_at ON hearth_data.agent_poll (at);
