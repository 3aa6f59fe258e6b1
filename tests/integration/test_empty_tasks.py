"""Why a task collected nothing: each cause, made on purpose, has its state and its sentence, and both of two servers say the
same. Tasks last minutes, so what happened is moved into the past."""

import threading
import unittest
import uuid

import agents
import server
import task_data
import tasks
from agents import Instance, Process, Rover
from pprof import Profile
from tasks import MINUTE, create

# Past the end of a task that was told just now, and past the time in which data may still come.
OVER = 3 * MINUTE


class Of:
    """A server for one tenant."""

    def __init__(self, at, tenant):
        self.at, self.tenant, self.sql = at, tenant, at.sql

    def connect(self, method, message):
        return self.at.connect(method, message, {"X-Scope-OrgID": self.tenant})


class EmptyTasks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = server.Cluster()
        cls.servers = [server.Server("--multitenancy", database_url=cls.cluster.url()) for _ in range(2)]

    @classmethod
    def tearDownClass(cls):
        for at in cls.servers:
            at.stop()
        cls.cluster.stop()

    def each_way(self):
        """(created at, agents ask at), both ways, each a tenant of its own."""
        for number, (first, second) in enumerate((self.servers, self.servers[::-1])):
            self.tenant = "%s-%d" % (self.id().rsplit(".", 1)[1], number)
            self.agents_at = second
            yield Of(first, self.tenant)

    def rover(self, *processes):
        rover = Rover(self.agents_at, self.tenant)
        rover.report(*processes)
        return rover

    def instance(self, name="i-1", service="shop"):
        return Instance(self.agents_at, service, name, self.tenant)

    def expect(self, task_id, state, *parts):
        for at in self.servers:
            found, reason = tasks.state(Of(at, self.tenant), task_id)
            self.assertEqual(found, state, reason)
            for part in parts:
                self.assertIn(part, reason)

    def only_target(self, task_id):
        found = tasks.get(Of(self.servers[0], self.tenant), task_id)
        (target,) = found["targets"]
        self.assertEqual(target["reason"], found["task"]["stateReason"])
        return target

    # ---- nobody was told ----

    def test_01_no_agent_has_ever_polled(self):
        for at in self.each_way():
            task_id, trace = create(at), create(at, kind="TRACE")
            self.expect(task_id, "WAITING_FOR_AGENT", "no agent of processes (eBPF) has ever asked for tasks")
            self.expect(trace, "WAITING_FOR_AGENT", "no instance of the service has ever asked for trace tasks")
            tasks.age(at, OVER)
            self.expect(task_id, "NEVER_DELIVERED", "no agent of processes (eBPF) has ever asked for tasks")
            self.expect(trace, "NEVER_DELIVERED", "no instance of the service has ever asked for trace tasks")

    def test_01_a_task_that_is_handed_out_while_its_state_is_read_has_one_state(self):
        """A lock holds up the reading between the targets and who asked; meanwhile the task is handed out."""
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p"))
            self.assertEqual(rover.query_tasks(), [])  # it is noted that the agent asks
            task_id = create(at)
            session = server.Session(self.cluster.url())
            try:
                session.run("BEGIN; LOCK TABLE hearth_data.agent_poll")
                found = []
                reader = threading.Thread(target=lambda: found.append(tasks.state(at, task_id)))
                reader.start()
                waits = "SELECT 1 FROM pg_locks WHERE relation = 'hearth_data.agent_poll'::regclass AND NOT granted"
                server.eventually(lambda: at.sql(waits), what="the reader")
                session.run(
                    "INSERT INTO hearth_data.task_delivery SELECT task_id, '%s', '%s', created_at + 1, updated_at, created_at + 1"
                    " FROM hearth_data.task WHERE task_id = '%s'" % (rover.processes[0].process_id, rover.agent_id, task_id)
                )
                session.run("COMMIT")
                reader.join()
            finally:
                session.close()
            ((state, reason),) = found
            self.assertEqual(state, "WAITING_FOR_AGENT")
            self.assertIn("a matching agent last asked at about ", reason)
            self.expect(task_id, "NOTIFIED", "told at ")

    def test_02_agents_poll_but_have_no_process_of_the_service(self):
        for at in self.each_way():
            task_id = create(at)
            rover = self.rover(Process("another", "i", "p"))
            self.assertEqual(rover.query_tasks(), [])
            self.expect(task_id, "NO_PROCESS_MATCHES", "1 agents ask, but none reports a process of service shop")
            tasks.age(at, OVER)
            self.expect(task_id, "NEVER_DELIVERED", "none reports a process of service shop")

    def test_03_no_process_has_the_labels(self):
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p", labels=["x"]), Process("shop", "i", "q", labels=["y"], pid=2))
            task_id = create(at, labels=["x", "y"])
            self.assertEqual(rover.query_tasks(), [])
            self.expect(task_id, "NO_PROCESS_MATCHES", "the service has 2 processes, but none has the label(s) x, y")
            tasks.age(at, OVER)
            self.expect(task_id, "NEVER_DELIVERED", "none has the label(s) x, y")

    def test_04_the_processes_cannot_be_profiled(self):
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p", can_be_profiled=False))
            prepared = at.connect(tasks.TASKS + "PrepareTask", {"service": "shop"})
            self.assertEqual(prepared.get("canBeProfiled", False), False)
            self.assertIn("cannot be profiled", prepared["reason"])
            task_id = create(at)
            self.assertEqual(rover.query_tasks(), [])
            self.expect(task_id, "UNSUPPORTED", "1 processes match, but their agents say that they cannot be profiled")
            tasks.age(at, OVER)
            self.expect(task_id, "NEVER_DELIVERED", "cannot be profiled")

    def test_05_it_has_not_started(self):
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p"))
            task_id = create(at, startMs=server.now_ms() + 60 * MINUTE)
            self.assertEqual(rover.query_tasks(), [])
            self.expect(task_id, "NOT_STARTED", "it starts at ")

    def test_06_it_was_cancelled_before_any_agent_got_it(self):
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p"))
            task_id = create(at)
            answer = at.connect(tasks.TASKS + "CancelTask", {"taskId": task_id})
            self.assertEqual(answer["note"], "no agent has received it, and none will: nothing runs")
            self.assertEqual(rover.query_tasks(), [])
            tasks.age(at, OVER)
            self.expect(task_id, "CANCELLED", "before anybody was told")

    def test_07_the_agent_polled_after_the_end(self):
        for at in self.each_way():
            task_id, trace = create(at), create(at, kind="TRACE")
            tasks.age(at, OVER)
            self.assertEqual(self.rover(Process("shop", "i", "p")).query_tasks(), [])
            self.assertEqual(self.instance().query_tasks(Instance.TRACE), [])
            self.expect(task_id, "NEVER_DELIVERED", "no agent of processes (eBPF) asked", "the first came at", "too late")
            self.expect(trace, "NEVER_DELIVERED", "no instance of the service asked for trace tasks", "too late")

    # ---- told, and nothing came ----

    def test_08_the_agent_got_the_task_and_is_silent(self):
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p"))
            task_id = create(at)
            self.expect(task_id, "WAITING_FOR_AGENT", "ever asked")
            self.assertEqual(len(rover.query_tasks()), 1)
            self.expect(task_id, "NOTIFIED", "it is not known yet whether the answer arrived")
            tasks.age(at, OVER)
            self.expect(task_id, "NOTHING_SAMPLED", rover.agent_id, "has not been heard of since")
            target = self.only_target(task_id)
            self.assertEqual((target["instance"], target["process"], target["processId"]), ("i", "p", rover.processes[0].process_id))

    def test_09_the_process_was_idle(self):
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p"))
            task_id, off = create(at), create(at, kind="OFF_CPU")
            self.assertEqual(len(rover.query_tasks()), 2)
            self.assertEqual(rover.query_tasks(), [])
            self.expect(task_id, "NOTIFIED", "nothing has come yet, it ends at")
            tasks.age(at, OVER)
            self.expect(task_id, "NOTHING_SAMPLED", "sent no stack traces: the process was idle")
            self.expect(off, "NOTHING_SAMPLED", "no thread of the process was switched off a CPU")

    def told_trace(self, at, **fields):
        """A trace task that an instance has taken and finished."""
        task_id = create(at, kind="TRACE", **fields)
        instance = self.instance()
        self.assertEqual(len(instance.query_tasks(Instance.TRACE)), 1)
        return task_id, instance

    def test_10_requests_were_of_other_endpoints(self):
        for at in self.each_way():
            task_id, instance = self.told_trace(at)
            for endpoint in ("/list", "/list", "/cart"):
                self.request(at, instance, endpoint, 700)
            instance.finish_task(task_id)
            self.expect(task_id, "NOTHING_SAMPLED", "no request of /pay was traced; those seen were /list, /cart")
            self.assertEqual(self.only_target(task_id)["instance"], "i-1")

    def test_11_requests_were_shorter_than_the_threshold(self):
        for at in self.each_way():
            task_id, instance = self.told_trace(at, minDurationMs=500)
            for milliseconds in (7, 12, 3):
                self.request(at, instance, "/pay", milliseconds)
            self.request(at, instance, "/list", 900)
            instance.finish_task(task_id)
            self.expect(task_id, "NOTHING_SAMPLED", "all 3 requests of /pay were shorter than the 500 ms", "the slowest took 12 ms")

    def test_11_no_request_was_traced_at_all(self):
        for at in self.each_way():
            task_id, instance = self.told_trace(at)
            instance.finish_task(task_id)
            self.expect(task_id, "NOTHING_SAMPLED", "the instance finished without snapshots", "no traced request at all, so none of /pay")

    def request(self, at, instance, endpoint, milliseconds):
        """A traced request that has ended, as soon as it is stored."""
        start, name = server.now_ms(), uuid.uuid4().hex
        instance.send_segments(instance.segment(name, name, [agents.span(0, endpoint, start, start + milliseconds)]))
        stored = "SELECT 1 FROM hearth_data.span_group WHERE convert_from(segment_id, 'UTF8') = '%s'" \
            " OR encode(segment_id, 'hex') = '%s'" % (name, name)
        server.eventually(lambda: at.sql(stored), what="the spans are stored")

    def upload(self, instance, method, task_id, status=0, size=-1, error=None):
        """The first message of an upload, with metadata; the type of each answer."""
        metadata = [(1, instance.service), (2, instance.instance), (3, task_id), (4, status), (5, size)]
        message = [(1, metadata)] + ([(2, error)] if error else [])
        return [answer.get(1, [0])[0] for answer in instance.chat(method, [message])]

    def test_12_the_agent_reports_an_error_or_its_file_is_too_large(self):
        for at in self.each_way():
            instance = self.instance()
            failed = create(at, kind="ASYNC_PROFILER", instances=["i-1"], events=["cpu"])
            self.assertEqual(len(instance.query_tasks(Instance.ASYNC)), 1)
            self.upload(instance, "skywalking.v10.AsyncProfilerTask/collect", failed, status=1, error="no perf events here")
            self.expect(failed, "FAILED", "the agent reported an error: no perf events here")
            large = create(at, kind="PPROF", instances=["i-1"], events=["heap"])
            self.assertEqual(len(instance.query_tasks(Instance.PPROF)), 1)
            self.assertEqual(self.upload(instance, "skywalking.v10.PprofTask/collect", large, size=(1 << 31) - 1), [2])
            self.expect(large, "FAILED", "the result was refused as too large")
            self.assertEqual(self.only_target(large)["state"], "TASK_STATE_FAILED")

    # ---- what was refused, and what is not all ----

    def refused(self, send):
        with self.assertRaises(server.RpcError) as caught:
            send()
        self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertIn("the agent's clock is 20", caught.exception.message)

    def flush(self, rover, task_id, start, at_ms):
        """A stack trace, as its agent sends it each 5 s."""
        metadata = task_data.metadata(task_id, rover.processes[0].process_id, start, at_ms)
        rover.collect(task_data.STACKS, [[metadata, (2, task_data.stacks((0, 1), user="main-run") + [(2, 3)])]])

    def test_13_the_clock_of_an_agent_is_20_minutes_ahead(self):
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p"))
            task_id, ahead = create(at), server.now_ms() + 20 * MINUTE + 1000
            self.assertEqual(len(rover.query_tasks()), 1)
            self.refused(lambda: self.flush(rover, task_id, ahead, ahead))
            self.expect(task_id, "FAILED", "what it sent was refused: the agent's clock is 20.0 min ahead of the server's")
            self.assertEqual(self.only_target(task_id)["state"], "TASK_STATE_FAILED")
            (entry,) = [e for e in tasks.get(at, task_id)["log"] if e["event"] == "TASK_EVENT_FAILED"]
            self.assertEqual((entry["instance"], entry["processId"]), ("i", rover.processes[0].process_id))
            # The clock was set right: what came counts, and the rest is told.
            now = server.now_ms()
            self.flush(rover, task_id, now, now)
            self.expect(task_id, "RUNNING", "1 stack trace so far", "; not all: what it sent was refused")

    def test_13_the_clock_of_a_go_program_is_20_minutes_ahead(self):
        for at in self.each_way():
            task_id, instance = self.told_trace(at)
            p = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=(server.now_ms() + 20 * MINUTE + 1000) * 1_000_000)
            content = p.add(["main", "f"], [1, 10], {"traceSegmentID": "s1"}).encode()
            report = [[(1, task_id), (2, content), (3, True)]]
            self.refused(lambda: instance.collect(task_data.GO, report))
            instance.finish_task(task_id)
            self.expect(task_id, "FAILED", "what it sent was refused: the agent's clock is 20.0 min ahead of the server's")
            self.assertEqual(self.only_target(task_id)["instance"], "i-1")
            tip = at.connect(tasks.TASKS + "ListSegments", {"taskId": task_id})["tip"]
            self.assertIn("Data not found: what it sent was refused: the agent's clock is 20.0 min ahead", tip)

    def test_13_the_clock_of_a_traced_program_is_20_minutes_ahead(self):
        for at in self.each_way():
            task_id, instance = self.told_trace(at)
            ahead = server.now_ms() + 20 * MINUTE + 1000
            instance.send_segments(instance.segment("t1", "s1", [agents.span(0, "/pay", ahead, ahead + 700)]))
            instance.finish_task(task_id)
            self.expect(task_id, "FAILED", "the agent's clock is 20.0 min ahead of the server's")
            instance.send_snapshots(agents.snapshot(task_id, "s1", 0, ahead, ["main", "pay"]))
            self.expect(task_id, "FINISHED", "1 snapshot came", "; not all: what it sent was refused: the agent's clock is 20.0 min")
            tip = at.connect(tasks.TASKS + "ListSegments", {"taskId": task_id})["tip"]
            self.assertIn("1 of 1 profiled segments are not there: what it sent was refused: the agent's clock", tip)

    def test_14_an_agent_profiled_20_seconds_of_2_minutes(self):
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p"))
            task_id = create(at, durationMs=2 * MINUTE)
            self.assertEqual(len(rover.query_tasks()), 1)
            start = server.now_ms()
            for seconds in (5, 10, 20):
                self.flush(rover, task_id, start, start + seconds * 1000)
            tasks.age(at, OVER)
            self.expect(task_id, "FINISHED", "3 stack traces came", "; they cover 20 s of the 2 min of the task: its agent began late or ended early")
            # One that began late says the same.
            late = create(at, durationMs=2 * MINUTE)
            self.assertEqual(len(rover.query_tasks()), 1)
            start = server.now_ms()
            for seconds in (105, 110, 120):
                self.flush(rover, late, start, start + seconds * 1000)
            tasks.age(at, OVER)
            self.expect(late, "FINISHED", "; they cover 20 s of the 2 min")

    def test_14_a_run_that_was_profiled_completely_has_no_note(self):
        for at in self.each_way():
            rover = self.rover(Process("shop", "i", "p"))
            task_id = create(at)
            self.assertEqual(len(rover.query_tasks()), 1)
            start = server.now_ms()
            for seconds in (5, 30, 55):
                self.flush(rover, task_id, start, start + seconds * 1000)
            tasks.age(at, OVER)
            self.expect(task_id, "FINISHED", "3 stack traces came")
            self.assertNotIn("cover", tasks.state(at, task_id)[1])


if __name__ == "__main__":
    unittest.main()
