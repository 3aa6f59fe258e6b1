"""Exported tasks: what comes back out of them, hostile ones; and `hearth task` for what tasks brought."""

import base64
import os
import shutil
import subprocess
import tempfile
import unittest

import server
import task_data as agent
import tasks
from agents import Instance, Process, Rover
from flame_pages import embedded, stacks_of
from pprof import Profile


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = at = server.Server()
        cls.now = server.now_ms()
        request = {"kind": "TASK_KIND_ON_CPU", "service": "shop", "durationMs": 60_000}
        rover = Rover(at)
        rover.report(Process("shop", "pod-1", "app"), Process("shop", "pod-2", "app"))
        cls.task = at.connect(agent.TASKS + "CreateTask", request)["task"]["taskId"]
        rover.query_tasks()
        cls.processes = [agent.process_id("shop", pod, "app") for pod in ("pod-1", "pod-2")]
        for i, process in enumerate(cls.processes):
            for k in range(3):
                meta = agent.metadata(cls.task, process, cls.now - 30_000, cls.now - 5000 * k)
                stacks = [agent.on_cpu((0, n), n + i, "sys" if n == 2 else "", "main-f%d" % n, meta if n == 1 else None)
                          for n in range(1, 5)]
                agent.collect(at, stacks)
        cls.profile = Profile([("cpu", "nanoseconds")], time_ns=cls.now * 10**6).add(["main", "f"], [7]).encode()
        agent.upload(at, agent.PPROF, "shop", "pod-1", cls.task, cls.profile)
        agent.upload(at, agent.ASYNC, "shop", "pod-2", cls.task, agent.jfr(b"x" * 1000))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def ask(self, method, **request):
        return self.server.connect(agent.TASKS + method, request)

    def schedules(self, task):
        return self.ask("ListSchedules", taskId=task).get("schedules", [])

    def analysis(self, task):
        ids = [s["scheduleId"] for s in self.schedules(task)]
        return agent.trees(self.ask("AnalyzeStacks", scheduleIds=ids))

    def export(self):
        return base64.b64decode(self.ask("ExportTask", taskId=self.task)["archive"])

    def counts(self):
        return [
            self.server.sql("SELECT count(*) FROM hearth_data." + table)
            for table in ("task", "task_schedule", "task_stack_chunk", "task_upload", "task_log")
        ]

    def test_only_tasks_that_could_be_created_can_be_imported(self):
        """Long arguments of a profiler; a network task of no instance, which no server has exported."""
        profiler = {"kind": "TASK_KIND_ASYNC_PROFILER", "instances": ["pod-1"], "events": ["cpu"], "execArgs": "x" * 4096}
        network = {"kind": "TASK_KIND_NETWORK", "instance": "pod-1"}
        archives = []
        for request in ({**profiler, "durationMs": 60_000}, network):
            task = self.ask("CreateTask", service="shop", **request)["task"]["taskId"]
            archives.append(base64.b64decode(self.ask("ExportTask", taskId=task)["archive"]))
        imported = self.ask("ImportTask", archive=base64.b64encode(archives[0]).decode())["taskId"]
        self.assertEqual(self.ask("GetTask", taskId=imported)["task"]["execArgs"], profiler["execArgs"])
        if shutil.which("zstd") is None:
            return
        plain = subprocess.run(["zstd", "-dc"], input=archives[1], capture_output=True, check=True).stdout
        self.assertEqual(plain.count(b"\x05pod-1"), 1)
        packed = subprocess.run(["zstd", "-c"], input=plain.replace(b"\x05pod-1", b"\0"), capture_output=True, check=True)
        with self.assertRaises(server.RpcError) as caught:
            self.ask("ImportTask", archive=base64.b64encode(packed.stdout).decode())
        self.assertEqual((caught.exception.code, "no instance" in caught.exception.message), ("invalid_argument", True))

    def test_an_imported_task_equals_the_exported_one(self):
        archive = self.export()
        profiles = self.server.sql("SELECT count(*) FROM " + server.PROFILES)
        answer = self.ask("ImportTask", archive=base64.b64encode(archive).decode())
        imported = answer["taskId"]
        self.assertNotEqual(imported, self.task)
        task = self.ask("GetTask", taskId=imported)["task"]
        self.assertEqual((task["origin"], task["service"], task["kind"]),
                         ("TASK_ORIGIN_IMPORTED", "shop", "TASK_KIND_ON_CPU"))
        self.assertEqual(self.analysis(imported), self.analysis(self.task))
        plain = lambda task: [(s["processId"], s["startMs"], s["endMs"]) for s in self.schedules(task)]
        self.assertEqual(sorted(plain(imported)), sorted(plain(self.task)))
        found = self.ask("ListUploads", taskId=imported)["uploads"]
        contents = [base64.b64decode(self.ask("GetUpload", uploadId=u["uploadId"])["content"]) for u in found]
        self.assertEqual(sorted(contents), sorted([self.profile, agent.jfr(b"x" * 1000)]))
        logs = [
            sorted((e["instance"], e["event"]) for e in self.ask("GetTask", taskId=t).get("log", []))
            for t in (self.task, imported)
        ]
        self.assertEqual(logs[0], logs[1])
        self.assertEqual(self.server.sql("SELECT count(*) FROM " + server.PROFILES), profiles)

    def test_archives_that_are_damaged_store_nothing(self):
        archive = self.export()
        before = self.counts()
        middle = bytearray(archive)
        middle[len(middle) // 2] ^= 0xFF
        for bad in (b"", b"x", archive[:-10], archive[: len(archive) // 2], bytes(middle), b"hearth task 1\n\1"):
            with self.subTest(bytes=len(bad)), self.assertRaises(server.RpcError) as caught:
                self.ask("ImportTask", archive=base64.b64encode(bad).decode())
            self.assertEqual(caught.exception.code, "invalid_argument", caught.exception.message)
        self.assertEqual(self.counts(), before)

    def test_too_large_tasks_and_unknown_ones_are_refused(self):
        for request, code, part in (
            ({"taskId": self.task, "maxBytes": 100}, "invalid_argument", "max-task-export-bytes"),
            ({"taskId": self.task, "maxBytes": -1}, "invalid_argument", "max_bytes"),
            ({"taskId": "nobody"}, "not_found", "nobody"),
        ):
            with self.subTest(request=request), self.assertRaises(server.RpcError) as caught:
                self.ask("ExportTask", **request)
            self.assertEqual((caught.exception.code, part in caught.exception.message), (code, True), caught.exception.message)

    def hearth(self, *arguments, code=0):
        url = "http://127.0.0.1:%d" % self.server.port
        done = subprocess.run(
            [server.HEARTH, "task", *arguments, "--url", url], capture_output=True, text=True, env=server.server_environment()
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_hearth_shows_the_results_of_a_task(self):
        runs = self.hearth("schedules", self.task, "--no-headers").splitlines()
        self.assertEqual(len(runs), 2)
        self.assertTrue(all("app" in line and "pod-" in line for line in runs))
        lines = dict(line.rsplit(" ", 1) for line in self.hearth("stacks", self.task, "-o", "collapsed").splitlines())
        expected = {"main;f%d%s" % (n, ";sys_[k]" if n == 2 else ""): str(3 * (n + n + 1)) for n in range(1, 5)}
        self.assertEqual(lines, expected)
        page = embedded(self.hearth("stacks", self.task, "-o", "html"))
        self.assertEqual(page["unit"], "dumps")
        self.assertEqual({";".join(stack): str(value) for stack, value in stacks_of(page).items()}, expected)
        self.assertIn('tooltip="sys_[k]"', self.hearth("stacks", self.task, "-o", "dot"))
        tree = self.hearth("stacks", self.task)
        self.assertEqual(tree.splitlines()[:3], ["         dumps", "            72  main", "            27    f4"])
        one = self.hearth("stacks", runs[0].split()[0], "-o", "json")
        self.assertIn('"dumps"', one)
        self.hearth("stacks", self.task, "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:00:01Z", code=3)
        self.hearth("stacks", self.task, "--from", "2026-01-01", "--to", "2026-01-02", "-o", "html", code=3)
        self.hearth("stacks", self.task, "--weight", "mass", code=2)
        uploads = [line.split() for line in self.hearth("uploads", self.task, "--no-headers").splitlines()]
        self.assertEqual(sorted(u[2] for u in uploads), ["jfr", "pprof"])
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "file")
            self.hearth("download", next(u[0] for u in uploads if u[2] == "pprof"), path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), self.profile)
            self.hearth("export", self.task, path)
            imported = self.hearth("import", path).split()[0]
            self.assertEqual(self.analysis(imported), self.analysis(self.task))
            self.hearth("import", os.path.join(directory, "missing"), code=2)
        self.hearth("schedules", "nobody", code=3)


class Retention(unittest.TestCase):
    TABLES = ("task_schedule", "task_stack_chunk", "task_upload", "task_upload_piece")

    def test_tasks_older_than_retain_tasks_are_deleted(self):
        at = server.Server("--retain-tasks", "1h")
        now = server.now_ms()
        kept, gone = (
            tasks.create(at, "ASYNC_PROFILER", service=service, instances=["pod-1"], events=["cpu"]) for service in ("shop", "bar")
        )
        for task, service in ((kept, "shop"), (gone, "bar")):
            meta = agent.metadata(task, "0" * 64, now - 30_000, now)
            agent.collect(at, [agent.on_cpu((0, 1), 1, user="main", task=meta)])
            Instance(at, service, "pod-1").query_tasks(Instance.ASYNC)
            agent.upload(at, agent.ASYNC, service, "pod-1", task, agent.jfr(task.encode()))
        at.sql("DELETE FROM hearth_data.task WHERE task_id = '%s'" % gone)
        # As if all of it had come hours ago; one task has not been over for so long.
        at.sql("UPDATE hearth_data.task_schedule SET start_at = start_at - 7200000, end_at = end_at - 7200000")
        at.sql("UPDATE hearth_data.task_upload SET received_at = received_at - 7200000")
        at.terminate()
        at.start()
        counts = lambda: [at.sql("SELECT count(*) FROM hearth_data." + table)[0][0] for table in self.TABLES]
        server.eventually(lambda: counts() == ["1"] * 4, what="only the results of one task")
        self.assertEqual(at.sql("SELECT task_id FROM hearth_data.task_schedule"), [[kept]])
        self.assertEqual(at.sql("SELECT task_id FROM hearth_data.task_upload"), [[kept]])
        at.stop()


if __name__ == "__main__":
    unittest.main()
