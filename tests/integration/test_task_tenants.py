"""What tasks of one tenant brought is nobody else's: every question about it by id, asked for another tenant; and data that
another tenant's agents send under its ids."""

import unittest

import server
import task_data
from agents import Instance, Process, Rover
from pprof import Profile

TASKS = "hearth.v1.TaskService/"
OURS, THEIRS, OTHERS = ({"X-Scope-OrgID": name} for name in ("ours", "theirs", "others"))
CREATED = {
    "ON_CPU": {"durationMs": 60_000},
    "NETWORK": {"instance": "pod-1"},
    "TRACE": {"durationMs": 60_000, "endpoint": "/pay", "dumpPeriodMs": 10, "maxSamples": 5},
    "PPROF": {"durationMs": 60_000, "instances": ["pod-1"], "events": ["cpu"]},
}


class Tenants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server("--multitenancy")
        cls.now = server.now_ms()
        cls.rover = Rover(cls.server, "ours")
        cls.process = Process("shop", "pod-1", "app")
        cls.rover.report(cls.process)
        cls.ids = {}
        for kind, fields in CREATED.items():
            request = {"kind": "TASK_KIND_" + kind, "service": "shop", **fields}
            cls.ids[kind] = cls.server.connect(TASKS + "CreateTask", request, OURS)["task"]["taskId"]
        cls.rover.query_tasks()
        cls.program = Instance(cls.server, "shop", "pod-1", "ours")
        cls.program.query_tasks(Instance.TRACE)
        cls.program.query_tasks(Instance.PPROF)
        cls.send("ours", 7)
        snapshot = [(1, cls.ids["TRACE"]), (2, "segment-1"), (3, cls.now), (4, 0), (5, [(1, "main"), (1, "pay")])]
        cls.program.collect(Instance.SNAPSHOTS, [snapshot])
        profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=cls.now * 1_000_000, duration_ns=10**9)
        content = profile.add(["main", "pay"], [3, 30]).encode()
        pieces = [[task_data.about("shop", "pod-1", cls.ids["PPROF"], 0, len(content))], [(3, content)]]
        cls.program.chat(task_data.PPROF, pieces)
        cls.schedule = task_data.schedule_id(cls.ids["ON_CPU"], cls.process.process_id, cls.now)
        uploads = cls.server.connect(TASKS + "ListUploads", {"taskId": cls.ids["PPROF"]}, OURS)["uploads"]
        cls.upload = uploads[0]["uploadId"]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def send(cls, tenant, count):
        """Stack traces under the ids of our run."""
        metadata = task_data.metadata(cls.ids["ON_CPU"], cls.process.process_id, cls.now, cls.now)
        message = task_data.on_cpu((1, 2), count, "read", "main-pay-" + tenant, metadata)
        cls.server.stream_unary(task_data.STACKS, [message], [("x-scope-orgid", tenant)])

    def ask(self, method, request, headers=OURS):
        return self.server.connect(TASKS + method, request, headers)

    def stacks(self, headers=OURS):
        return task_data.names(task_data.trees(self.ask("AnalyzeStacks", {"scheduleIds": [self.schedule]}, headers)))

    def test_an_own_task_has_stacks_files_and_segments(self):
        self.assertEqual(self.stacks(), {("main", "pay", "ours", "read"): 7})
        self.assertEqual(len(self.ask("ListTasks", {})["tasks"]), len(self.ids))
        self.assertTrue(self.ask("GetUpload", {"uploadId": self.upload})["content"])
        query = {"queries": [{"segmentId": "segment-1", "ranges": [{"startMs": self.now - 1000, "endMs": self.now + 1000}]}]}
        self.assertTrue(self.ask("AnalyzeSegments", query).get("trees"))

    def test_queries_by_id_find_nothing_for_another_tenant(self):
        for method in ("GetTask", "CancelTask", "KeepAliveTask", "ExportTask", "ListSegments"):
            for task_id in self.ids.values():
                with self.subTest(method), self.assertRaises(server.RpcError) as caught:
                    self.ask(method, {"taskId": task_id}, OTHERS)
                self.assertEqual(caught.exception.code, "not_found")
        for method, request in (
            ("AnalyzeStacks", {"scheduleIds": [self.schedule]}),
            ("GetUpload", {"uploadId": self.upload}),
        ):
            with self.subTest(method), self.assertRaises(server.RpcError) as caught:
                self.ask(method, request, OTHERS)
            self.assertEqual(caught.exception.code, "not_found")
        self.assertEqual(self.ask("ListTasks", {}, OTHERS).get("tasks", []), [])
        for task_id in self.ids.values():
            self.assertEqual(self.ask("ListSchedules", {"taskId": task_id}, OTHERS).get("schedules", []), [])
            self.assertEqual(self.ask("ListUploads", {"taskId": task_id}, OTHERS).get("uploads", []), [])
            self.assertEqual(self.ask("AnalyzeUploads", {"taskId": task_id}, OTHERS).get("elements", []), [])
        query = {"queries": [{"segmentId": "segment-1", "ranges": [{"startMs": 0, "endMs": self.now + 1000}]}]}
        self.assertEqual(self.ask("AnalyzeSegments", query, OTHERS).get("trees", []), [])
        self.assertNotIn("CANCELLED", self.ask("GetTask", {"taskId": self.ids["ON_CPU"]})["task"]["state"])

    def test_data_of_another_tenant_under_our_ids_is_not_shown_to_us(self):
        before = self.ask("GetTask", {"taskId": self.ids["ON_CPU"]})
        self.send("theirs", 1000)
        self.assertEqual(self.stacks(), {("main", "pay", "ours", "read"): 7})
        self.assertEqual(self.stacks(THEIRS), {("main", "pay", "theirs", "read"): 1000})
        theirs = Instance(self.server, "shop", "pod-1", "theirs")
        theirs.report()
        self.assertEqual(theirs.query_tasks(Instance.TRACE), [])
        theirs.finish_task(self.ids["TRACE"])
        snapshot = [(1, self.ids["TRACE"]), (2, "segment-2"), (3, self.now), (4, 0), (5, [(1, "main"), (1, "theirs")])]
        theirs.collect(Instance.SNAPSHOTS, [snapshot])
        their_rover = Rover(self.server, "theirs", agent_id=self.rover.agent_id)
        their_rover.report(Process("shop", "pod-1", "app"))
        self.assertEqual(their_rover.query_tasks(), [])
        self.assertEqual(self.ask("GetTask", {"taskId": self.ids["ON_CPU"]}), before)
        log = self.ask("GetTask", {"taskId": self.ids["TRACE"]}).get("log", [])
        self.assertEqual([entry["event"] for entry in log], ["TASK_EVENT_NOTIFIED"])
        rows = self.server.sql("SELECT count(*) FROM hearth_data.task_snapshot WHERE segment_id = 'segment-2'")
        self.assertEqual(rows, [["0"]])


if __name__ == "__main__":
    unittest.main()
