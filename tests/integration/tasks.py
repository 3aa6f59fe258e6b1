"""What tests of tasks share: asking TaskService, and moving what happened into the past, since tasks last minutes."""

import server

TASKS = "hearth.v1.TaskService/"
MINUTE = 60_000


def create(at, kind="ON_CPU", **fields):
    """The id of a new task of one minute, as the server names it."""
    request = {"kind": "TASK_KIND_" + kind, "service": "shop", "durationMs": MINUTE, **fields}
    if kind == "TRACE":
        request = {"endpoint": "/pay", "dumpPeriodMs": 10, "maxSamples": 5, **request}
    if kind == "NETWORK":
        request.pop("durationMs")
    return at.connect(TASKS + "CreateTask", request)["task"]["taskId"]


def get(at, task_id):
    return at.connect(TASKS + "GetTask", {"taskId": task_id})


def state(at, task_id):
    """("RUNNING", reason)"""
    task = get(at, task_id)["task"]
    return task["state"].removeprefix("TASK_STATE_"), task["stateReason"]


def age(at, ms):
    """All that is known of tasks and agents happened `ms` earlier."""
    for table, columns in (
        ("task", "start_at created_at updated_at cancelled_at extended_at"),
        ("task_delivery", "cursor_at delivered_at confirmed_at task_updated_at"),
        ("task_log", "at last_at"),
        ("agent_poll", "since at"),
        ("instance", "first_seen last_seen"),
        ("process", "first_seen last_seen"),
        ("task_schedule", "start_at end_at"),
        ("task_stack_chunk", "at"),
    ):
        changes = ", ".join("%s = %s - %d" % (column, column, ms) for column in columns.split())
        at.sql("UPDATE hearth_data.%s SET %s" % (table, changes))
    nanoseconds, day = ms * 1_000_000, 86_400_000_000_000
    moved = "start_at - %d" % nanoseconds
    for begin, name in at.sql(  # after midnight, rows move to a day that has no partition
        "SELECT begin, 'hearth_data.span_group_' || to_char(to_timestamp(begin / 1000000000) AT TIME ZONE 'UTC', 'YYYYMMDD')"
        " FROM (SELECT DISTINCT (%s) / %d * %d AS begin FROM hearth_data.span_group) d" % (moved, day, day)
    ):
        at.sql("CREATE TABLE IF NOT EXISTS %s PARTITION OF hearth_data.span_group FOR VALUES FROM (%s) TO (%d)" % (name, begin, int(begin) + day))
    at.sql("UPDATE hearth_data.span_group SET start_at = %s" % moved)


def refused(case, at, part, code="invalid_argument", **fields):
    with case.assertRaises(server.RpcError) as caught:
        create(at, **fields)
    case.assertEqual(caught.exception.code, code)
    case.assertIn(part, caught.exception.message)
