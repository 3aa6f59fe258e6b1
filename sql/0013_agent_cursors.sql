-- The cursor that the agent of an instance said when it was told of a task, the last time; 0 of agents of processes. When it is below
-- cursor_at of a task that the instance ran before, its process has restarted in between: what a process counts since its start is
-- compared with an earlier file of the same process only (docs/reference/skywalking.md, Files).
ALTER TABLE hearth_data.task_delivery ADD COLUMN agent_cursor int8 NOT NULL DEFAULT 0;

-- An instance that is told again of an async-profiler or pprof task runs it from then.
COMMENT ON COLUMN hearth_data.task_delivery.delivered_at IS 'first; of async-profiler and pprof tasks: the last time';
