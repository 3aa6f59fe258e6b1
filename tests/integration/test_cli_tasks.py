"""hearth task: what it prints, and the exit codes of --watch."""

import json
import subprocess
import unittest

import server
import tasks
from agents import Instance, Process, Rover
from test_cli import NO_DATA, OK, USAGE, hearth

FAILED = 1


class CliTasks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()
        cls.env = {"HEARTH_URL": "http://127.0.0.1:%d" % cls.server.port}

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def run_hearth(self, *arguments, code=OK):
        done = hearth("task", *arguments, env=self.env)
        self.assertEqual(done.code, code, done.out + done.err)
        return done.out if code in (OK, NO_DATA) else done.err

    def rover(self, service, *names):
        rover = Rover(self.server)
        rover.report(*[Process(service, "i", name, labels=["x", name], pid=n + 1) for n, name in enumerate(names)])
        return rover

    def test_prepare_counts_the_processes_of_a_task(self):
        self.rover("prepared", "p", "q")
        self.assertEqual(self.run_hearth("prepare", "prepared"), "2 processes would be profiled\nlabels: p,q,x\n")
        self.assertEqual(
            self.run_hearth("prepare", "prepared", "--process-labels", "x,q").splitlines()[0], "1 process would be profiled"
        )
        self.assertIn("no service of this name is known", self.run_hearth("prepare", "nobody", code=NO_DATA))

    def test_a_task_is_created_watched_and_logged(self):
        rover = self.rover("whole", "p")
        line = self.run_hearth("create", "oncpu", "--service", "whole", "--duration", "90s", "--process-labels", "x")
        task_id = line.split()[0]
        self.assertIn("on-CPU   whole", line)
        self.assertIn("1m30s  waiting for an agent  labels x", line)
        rover.query_tasks()
        found = self.run_hearth("get", task_id)
        self.assertIn("notified", found.splitlines()[0])
        self.assertRegex(found.splitlines()[2], r"^  i/p +notified: told at ")
        self.assertEqual(json.loads(self.run_hearth("get", task_id, "-o", "json"))["task"]["taskId"], task_id)
        self.assertRegex(self.run_hearth("log", task_id), r"^time .*\n\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  notified  i +[0-9a-f]{64}\n$")
        self.assertIn("It was sent to 1 before and cannot be called back", self.run_hearth("cancel", task_id))
        self.assertIn("cancelled", self.run_hearth("list", "whole"))
        self.run_hearth("list", "whole", "--kind", "trace", code=NO_DATA)

    def test_a_list_has_the_logs_of_all_its_tasks_in_one_call(self):
        rover, instance = self.rover("logged", "p", "q"), Instance(self.server, "logged", "i")
        first = tasks.create(self.server, service="logged")
        silent = tasks.create(self.server, kind="PPROF", service="logged", instances=["nobody"], events=["cpu"])
        rover.query_tasks()
        last = tasks.create(self.server, kind="TRACE", service="logged")
        instance.query_tasks(Instance.TRACE)
        instance.finish_task(last)
        answer = self.server.connect(tasks.TASKS + "ListTasks", {"service": "logged", "includeLogs": True})
        made = [last, silent, first]
        self.assertEqual([t["taskId"] for t in answer["tasks"]], made)
        self.assertEqual([log["taskId"] for log in answer["logs"]], made)
        self.assertEqual([len(log.get("entries", [])) for log in answer["logs"]], [2, 0, 2])
        for log in answer["logs"]:
            self.assertEqual(log.get("entries", []), tasks.get(self.server, log["taskId"]).get("log", []))
        self.assertNotIn("logs", self.server.connect(tasks.TASKS + "ListTasks", {"service": "logged"}))
        one = self.server.connect(tasks.TASKS + "ListTasks", {"service": "logged", "includeLogs": True, "pageSize": 1})
        self.assertEqual(one["logs"], answer["logs"][:1])
        # The client prints each below its task, as `log` has it.
        calls = ("hearth_request_seconds_count", (("method", tasks.TASKS + "GetTask"),))
        before = self.server.metrics().get(calls, 0)
        lines = self.run_hearth("list", "logged", "--log").splitlines()
        self.assertEqual(self.server.metrics().get(calls, 0), before)
        self.assertEqual([line[:2] == "  " for line in lines], [False, True, True, False, False, True, True])
        self.assertEqual([line.split() for line in lines[1:3]], [line.split() for line in self.run_hearth("log", last).splitlines()[1:]])
        self.assertGreater(self.server.metrics().get(calls, 0), before)

    def test_each_kind_of_task_is_created_from_its_options(self):
        self.rover("kinds", "p")
        made = {}
        for kind, *options in (
            ("trace", "--endpoint", "/pay", "--min-duration", "200ms", "--dump-period", "20ms", "--max-samples", "3"),
            ("network", "--instance", "i", "--sample", "uri=/a.*,min=100ms,4xx,request=1024", "--sample", "5xx,response=2048"),
            ("async", "--instances", "a,b", "--events", "lock,cpu,alloc", "--exec-args", "live"),
            ("pprof", "--instances", "a", "--events", "mutex", "--dump-period", "7", "--duration", "2m"),
            ("offcpu", "--start", "now+1h"),
        ):
            text = self.run_hearth("create", kind, "--service", "kinds", *options, "-o", "json")
            made[kind] = json.loads(text)["task"]
        self.assertEqual([made["trace"][k] for k in ("endpoint", "minDurationMs", "dumpPeriodMs", "maxSamples")], ["/pay", 200, 20, 3])
        self.assertEqual(
            made["network"]["samplingRules"],
            [{"uriRegex": "/a.*", "minDurationMs": 100, "when4xx": True, "requireCompleteRequest": True, "maxRequestBytes": 1024},
             {"when5xx": True, "requireCompleteResponse": True, "maxResponseBytes": 2048}],
        )
        self.assertEqual([made["async"][k] for k in ("instances", "events", "execArgs")], [["a", "b"], ["cpu", "lock", "alloc"], "live"])
        self.assertEqual([made["pprof"][k] for k in ("events", "dumpPeriodMs", "durationMs")], [["mutex"], 7, "120000"])
        self.assertEqual(made["offcpu"]["state"], "TASK_STATE_NOT_STARTED")
        self.assertEqual(len(self.run_hearth("list", "kinds", "--limit", "3").splitlines()), 1 + 3)

    def test_wrong_arguments_are_named(self):
        for part, *arguments in (
            ("oncpu, offcpu", "create", "cpu"),
            ("greater than or equals 60s", "create", "oncpu", "--service", "s", "--duration", "59s"),
            ("is not uri=REGEX", "create", "network", "--service", "s", "--instance", "i", "--sample", "nonsense"),
            ('"x" is not a value for --kind, which takes oncpu', "list", "--kind", "x"),
            ("hearth: task get: ID is missing; usage: hearth task get ID [OPTIONS]; try hearth task get --help\n", "get"),
            ('"shop" is one argument too many; usage: hearth task create KIND [OPTIONS]', "create", "trace", "shop"),
            ("there is no such task command: nonsense", "nonsense"),
            ("task create oncpu needs --service NAME", "create", "oncpu"),
            ("task create trace needs --endpoint NAME", "create", "trace", "--service", "s"),
            ("task create network needs --instance NAME", "create", "network", "--service", "s"),
            ("instance: only network tasks have one", "create", "oncpu", "--service", "s", "--instance", "i"),
            ("task create pprof needs --events A,B", "create", "pprof", "--service", "s", "--instances", "i"),
            ("which takes table or json", "create", "oncpu", "--service", "s", "-o", "collapsed"),
        ):
            self.assertIn(part, self.run_hearth(*arguments, code=USAGE))
        for command in ("analyze", "get", "stacks", "schedules", "uploads", "segments"):
            self.assertEqual(hearth("task", command, "nothing", env=self.env).err, 'hearth: no task "nothing"\n')
        self.assertEqual(self.run_hearth("list", "s", code=NO_DATA), "")  # what was refused is not there

    def test_missing_results_are_explained(self):
        self.rover("empty", "p")
        task_id = self.run_hearth("create", "oncpu", "--service", "empty").split()[0]
        for command, what in (("stacks", "stack traces"), ("schedules", "runs"), ("uploads", "files"), ("analyze", "files"), ("log", "log")):
            said = hearth("task", command, task_id, env=self.env)
            self.assertEqual(said.code, NO_DATA)
            elsewhere = "" if command == "stacks" else " (hearth task stacks has its results)"
            self.assertIn("hearth: no %s of this on-CPU task%s: waiting" % (what, elsewhere), said.err)
        self.assertIn("overlaps", self.run_hearth("create", "oncpu", "--service", "empty", code=FAILED))

    def test_watching_a_task_with_data_ends_well(self):
        rover = self.rover("busy", "p")
        task_id = tasks.create(self.server, service="busy")
        (command,) = rover.query_tasks()
        now = server.now_ms()
        metadata = [(1, task_id), (2, command["ProcessId"]), (3, now), (4, now + 5000)]
        stack = [(1, 1), (2, 7), (3, "leaf"), (3, "root")]
        rover.collect("skywalking.v3.EBPFProfilingService/collectProfilingData", [[(1, metadata), (2, [(1, stack), (2, 3)])]])
        state = lambda: tasks.state(self.server, task_id)
        server.eventually(lambda: state()[0] == "RUNNING", what="data came")
        self.assertIn("1 stack trace so far", state()[1])
        tasks.age(self.server, 3 * tasks.MINUTE)
        done = hearth("task", "get", task_id, "--watch", env=self.env)
        self.assertEqual(done.code, OK, done.out)
        self.assertIn("finished: 1 stack trace came", done.out)

    def test_watching_ends_with_the_task(self):
        """0 with data only: here idle, failed, cancelled."""
        rover = self.rover("idle", "p")
        idle = tasks.create(self.server, service="idle")
        rover.query_tasks()
        rover.query_tasks()
        instance = Instance(self.server, "failing", "i")
        failing = tasks.create(self.server, kind="ASYNC_PROFILER", service="failing", instances=["i"], events=["cpu"])
        instance.query_tasks(Instance.ASYNC)
        cancelled = tasks.create(self.server, service="cancelled")
        watching = [
            subprocess.Popen([server.HEARTH, "task", "get", task_id, "--watch"], stdout=subprocess.PIPE, text=True,
                             env=server.server_environment(self.env))
            for task_id in (idle, failing, cancelled)
        ]
        firsts = [w.stdout.readline() for w in watching]
        self.assertIn("notified: told at", firsts[0])
        instance.chat("skywalking.v10.AsyncProfilerTask/collect", [
            [(1, [(1, "failing"), (2, "i"), (3, failing), (4, 1), (5, -1)]), (2, "no perf events")]])
        self.server.connect(tasks.TASKS + "CancelTask", {"taskId": cancelled})
        tasks.age(self.server, 3 * tasks.MINUTE)
        ends = [(w.communicate(timeout=60)[0].splitlines()[-1], w.returncode) for w in watching]
        for (line, code), (part, expected) in zip(ends, (
            ("nothing sampled: its agent took the task", NO_DATA), ("failed: the agent reported an error: no perf events", FAILED),
            ("cancelled: cancelled at", FAILED),
        )):
            self.assertIn(part, line)
            self.assertEqual(code, expected)


if __name__ == "__main__":
    unittest.main()
