"""Agents are told of tasks: at once, all of them, and none twice, by two servers, with lost answers, restarts of hearthd and
an outage of the database in between."""

import random
import threading
import time
import unittest

import server
import tasks
from agents import Instance, Process, Rover
from tasks import MINUTE, create


class Delivery(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = server.Cluster()
        url = cls.cluster.url()
        cls.a = server.Server(database_url=url)
        cls.b = server.Server(database_url=url)

    @classmethod
    def tearDownClass(cls):
        cls.a.stop()
        cls.b.stop()
        cls.cluster.stop()

    def rover(self, at, service, *names, **more):
        rover = Rover(at)
        rover.report(*[Process(service, "i-1", name, pid=n + 1, **more) for n, name in enumerate(names)])
        return rover

    def assert_runs(self, commands, *expected):
        """(task, target type, process ids joined) of each."""
        self.assertEqual(
            sorted((c["TaskId"], c["TargetType"], c["ProcessId"]) for c in commands), sorted(expected)
        )

    def test_either_server_repeats_a_lost_answer_until_it_arrived(self):
        rover = self.rover(self.a, "lost", "p", "q")
        task_id = create(self.b, service="lost")
        self.assertEqual(rover.query_tasks(lose_answer=True), [])
        rover.server = self.b
        self.assertEqual(rover.query_tasks(lose_answer=True), [])
        found = rover.query_tasks()
        self.assert_runs(found, *[(task_id, "ON_CPU", p.process_id) for p in rover.processes])
        for at in (self.a, self.b):
            rover.server = at
            self.assertEqual(rover.query_tasks(), [])
        self.assertEqual(self.a.sql("SELECT count(*) FROM hearth_data.task_delivery WHERE task_id = '%s'" % task_id), [["2"]])

    def test_a_delivered_task_has_all_arguments(self):
        rover = self.rover(self.a, "arguments", "p", labels=["x", "y"])
        before = server.now_ms()
        task_id = create(self.a, service="arguments", kind="OFF_CPU", labels=["", "y"], durationMs=90_000)
        (found,) = rover.query_tasks()
        task = tasks.get(self.a, task_id)["task"]
        self.assertEqual(task["labels"], ["y"])
        self.assertEqual(
            sorted(found),
            ["ExtensionConfigJSON", "FixedTriggerDuration", "ProcessId", "SerialNumber", "TargetType", "TaskId", "TaskStartTime",
             "TaskUpdateTime", "TriggerType"],
        )
        self.assertEqual(found["TargetType"], "OFF_CPU")
        self.assertEqual(found["TriggerType"], "FIXED_TIME")
        self.assertEqual(found["FixedTriggerDuration"], "90")
        self.assertEqual(found["ExtensionConfigJSON"], "null")
        self.assertEqual(found["TaskStartTime"], task["startMs"])
        self.assertGreaterEqual(int(found["TaskUpdateTime"]), before)

    def test_a_task_waits_for_its_start_and_a_late_process_gets_it(self):
        rover = self.rover(self.a, "late", "p")
        start = server.now_ms() + 10 * MINUTE
        task_id = create(self.a, service="late", startMs=start)
        now_id = create(self.b, service="late", kind="OFF_CPU", durationMs=30 * MINUTE)
        self.assert_runs(rover.query_tasks(), (now_id, "OFF_CPU", rover.processes[0].process_id))
        self.assertEqual(tasks.state(self.a, task_id), ("NOT_STARTED", "it starts at %s" % _iso(start)))
        self.move(task_id, 10 * MINUTE)
        self.assert_runs(rover.query_tasks(), (task_id, "ON_CPU", rover.processes[0].process_id))
        late = Process("late", "i-1", "late", pid=77)
        rover.server = self.b
        rover.report(late)
        self.assert_runs(
            rover.query_tasks(), (task_id, "ON_CPU", late.process_id), (now_id, "OFF_CPU", late.process_id)
        )
        self.assertEqual(rover.query_tasks(), [])

    def move(self, task_id, ms):
        """It starts that much earlier."""
        self.a.sql("UPDATE hearth_data.task SET start_at = start_at - %d WHERE task_id = '%s'" % (ms, task_id))

    def test_a_cancelled_task_is_delivered_to_no_other_agent(self):
        rover = self.rover(self.a, "cancelled", "p")
        task_id = create(self.a, service="cancelled")
        self.assertEqual(len(rover.query_tasks()), 1)
        rover.report(Process("cancelled", "i-1", "q", pid=5))
        answer = self.b.connect(tasks.TASKS + "CancelTask", {"taskId": task_id})
        self.assertIn("It was sent to 1 before and cannot be called back", answer["note"])
        self.assertEqual(answer["task"]["state"], "TASK_STATE_CANCELLED")
        self.assertEqual(rover.query_tasks(), [])
        other = create(self.b, service="cancelled")  # it is in nobody's way any more
        self.assertEqual({c["TaskId"] for c in rover.query_tasks()}, {other})

    def test_a_network_task_is_kept_alive(self):
        rover = self.rover(self.a, "network", "p", "q")
        rules = [{"minDurationMs": 100, "when4xx": True, "requireCompleteRequest": True, "maxRequestBytes": 1024},
                 {"uriRegex": "/x.*", "when5xx": True, "requireCompleteResponse": True}]
        task_id = create(self.a, kind="NETWORK", service="network", instance="i-1", samplingRules=rules)
        (found,) = rover.query_tasks()
        self.assertEqual(found["ProcessId"], ",".join(sorted(p.process_id for p in rover.processes)))
        self.assertEqual(found["FixedTriggerDuration"], "600")
        extension = server.json.loads(found["ExtensionConfigJSON"])
        self.assertEqual(
            extension,
            {"NetworkSamplings": [
                {"MinDuration": 100, "When4xx": True, "When5xx": False, "Settings": {
                    "RequireCompleteRequest": True, "MaxRequestSize": 1024, "RequireCompleteResponse": False}},
                {"URIRegex": "/x.*", "When4xx": False, "When5xx": True, "Settings": {
                    "RequireCompleteRequest": False, "RequireCompleteResponse": True}}]},
        )
        self.assertEqual(tasks.get(self.b, task_id)["task"]["samplingRules"], rules)
        keep = lambda: self.b.connect(tasks.TASKS + "KeepAliveTask", {"taskId": task_id})["task"]["durationMs"]
        self.assertEqual(keep(), "600000")  # it has long enough to go
        self.assertEqual(rover.query_tasks(), [])
        self.move(task_id, 9 * MINUTE + 30_000)
        self.assertEqual(keep(), "1200000")
        self.assertEqual(keep(), "1200000")
        (again,) = rover.query_tasks()
        self.assertEqual((again["TaskId"], again["FixedTriggerDuration"]), (task_id, "1200"))
        self.assertEqual(rover.query_tasks(), [])

    def test_instances_get_tasks_of_their_kind(self):
        one, two = Instance(self.a, "langs", "one"), Instance(self.b, "langs", "two")
        trace = create(self.a, kind="TRACE", service="langs", endpoint=" /pay ", minDurationMs=7, maxSamples=3)
        create(self.b, kind="ASYNC_PROFILER", service="langs", instances=["one"], events=["alloc", "CPU", "lock"], execArgs="jstackdepth=9")
        pprof = create(self.b, kind="PPROF", service="langs", instances=["two"], events=["block"], durationMs=2 * MINUTE, dumpPeriodMs=4)
        ((name, found),) = one.query_tasks(Instance.TRACE)
        self.assertEqual(name, "ProfileTaskQuery")
        expected = {"TaskId": trace, "EndpointName": "/pay", "Duration": "1", "MinDurationThreshold": "7", "DumpPeriod": "10",
                    "MaxSamplingCount": "3"}
        self.assertEqual({k: found[k] for k in expected}, expected)
        self.assertEqual(sorted(set(found) - set(expected)), ["CreateTime", "SerialNumber", "StartTime"])
        ((name, found),) = one.query_tasks(Instance.ASYNC)
        self.assertEqual((name, found["Duration"], found["ExecArgs"]), ("AsyncProfilerTaskQuery", "60", "event=cpu,alloc,lock,jstackdepth=9"))
        self.assertEqual(one.query_tasks(Instance.PPROF), [])
        ((name, found),) = two.query_tasks(Instance.PPROF)
        self.assertEqual(
            (name, found["TaskId"], found["Events"], found["Duration"], found["DumpPeriod"]), ("PprofTaskQuery", pprof, "block", "2", "4")
        )
        self.assertEqual(len(two.query_tasks(Instance.TRACE)), 1)
        for method in (Instance.TRACE, Instance.ASYNC, Instance.PPROF):
            self.assertEqual(one.query_tasks(method) + two.query_tasks(method), [])
        self.assertEqual(one.finish_task(trace), [])
        self.assertEqual(one.finish_task("no-such-task"), [])
        log = [(e["instance"], e["event"]) for e in tasks.get(self.a, trace)["log"]]
        self.assertEqual(
            log, [("one", "TASK_EVENT_NOTIFIED"), ("two", "TASK_EVENT_NOTIFIED"), ("one", "TASK_EVENT_FINISHED")]
        )

    def test_garbage_is_refused(self):
        for method, fields in (
            ("skywalking.v3.EBPFProfilingService/queryTasks", [(1, ""), (2, 0)]),
            ("skywalking.v3.EBPFProfilingService/queryTasks", [(1, "a"), (2, (1 << 63) - 1)]),
            ("skywalking.v3.EBPFProfilingService/queryTasks", [(1, "a" * 1025), (2, 0)]),
            (Instance.TRACE, [(1, "s"), (2, "")]),
            (Instance.PPROF, [(1, ""), (2, "i")]),
        ):
            with self.assertRaises(server.RpcError) as caught:
                self.a.call(method, fields)
            self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertEqual(self.a.call(Instance.TRACE, [(1, "nobody"), (2, "i"), (3, 1 << 64 - 1)]), {})

    def test_two_hundred_agents_through_restarts_and_an_outage_run_each_task_once(self):
        """Each agent polls either server, loses answers, and is told in the end; what it ran is in `ran`."""
        n_agents = 200
        rovers = [self.rover(random.choice((self.a, self.b)), "fleet", "p-%d" % n) for n in range(n_agents)]
        ran = [[] for _ in rovers]
        stop = threading.Event()
        servers = [self.a, self.b]

        def poll(first):
            chance = random.Random(first)
            while not stop.is_set():
                for n in range(first, n_agents, 8):
                    rovers[n].server = chance.choice(servers)
                    try:
                        ran[n] += [c["TaskId"] for c in rovers[n].query_tasks(lose_answer=chance.random() < 0.2)]
                    except (server.RpcError, ValueError) as error:  # ValueError: the channel of a server that restarts
                        assert getattr(error, "code", "unavailable") in ("unavailable", "cancelled", "deadline_exceeded"), error
                        time.sleep(0.05)

        threads = [threading.Thread(target=poll, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        try:
            first = create(self.a, service="fleet")
            server.eventually(lambda: all(first in r for r in ran), what="all run the first task")
            self.cluster.stop()
            self.cluster.start()
            second = server.eventually(lambda: _try(lambda: create(self.b, service="fleet", kind="OFF_CPU")))
            self.b.terminate()
            self.b.start()
            server.eventually(lambda: all(second in r for r in ran), what="all run the second task")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual([sorted(r) for r in ran], [sorted([first, second])] * n_agents)


def _try(what):
    try:
        return what()
    except server.RpcError:
        return None


def _iso(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + ".%03dZ" % (ms % 1000)


if __name__ == "__main__":
    unittest.main()
