"""Files that agents send for tasks: pprof and JFR in pieces, Go profiles of traced requests; kept as they came, once; the pprof
the same in AnalyzeUploads and in the ordinary queries."""

import base64
import gzip
import itertools
import json
import os
import threading
import unittest

import grpc

import server
import task_data as agent
import tasks
import wire
from agents import Instance, Process, Rover
from flame_pages import embedded, stacks_of
from pprof import Decoded, Profile
from test_cli import NO_DATA, OK, USAGE, hearth

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
INVALID = grpc.StatusCode.INVALID_ARGUMENT
LISTED = "hearth.v1.ProfileService/"


class Uploads(unittest.TestCase):
    numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls):
        cls.server = server.Server("--max-task-upload-bytes", "3m")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        number = next(self.numbers)
        self.service, self.task = "service-%d" % number, "task-%d" % number
        self.now = server.now_ms()

    def ask(self, method, **request):
        return self.server.connect(agent.TASKS + method, request)

    def uploads(self):
        return self.ask("ListUploads", taskId=self.task).get("uploads", [])

    def content(self, upload):
        return base64.b64decode(self.ask("GetUpload", uploadId=upload["uploadId"])["content"])

    def profile(self, factor=1):
        p = Profile(TYPES, time_ns=self.now * 1_000_000, duration_ns=10**9)
        p.add(["main", "handle", "query"], [3 * factor, 30 * factor]).add(["main", "handle"], [1 * factor, 10 * factor])
        return p.add(["main", "gc"], [9 * factor, 20 * factor])

    def create(self, kind, **more):
        """A task of the service; its id becomes self.task."""
        request = {"kind": kind, "service": self.service, "durationMs": 60_000, **more}
        self.task = self.ask("CreateTask", **request)["task"]["taskId"]

    def told(self, *instances, kind="TASK_KIND_PPROF", method=Instance.PPROF, **more):
        """A task that these instances have taken."""
        if kind != "TASK_KIND_TRACE":
            more = {"events": ["cpu"], "instances": list(instances), **more}
        self.create(kind, **more)
        for instance in instances:
            self.assertEqual(len(Instance(self.server, self.service, instance).query_tasks(method)), 1)

    def outcomes(self):
        """Files that were stored, refused, and that their agents could not make."""
        found = self.server.metrics()
        return [found.get(("hearth_task_uploads_total", (("outcome", o),)), 0) for o in ("stored", "refused", "failed")]

    def log(self):
        """What came after the task was told."""
        found = self.ask("GetTask", taskId=self.task).get("log", [])
        return [(e["instance"], e["event"], e.get("message", "")) for e in found if e["event"] != "TASK_EVENT_NOTIFIED"]

    def tree(self, **more):
        """{root-first signatures: own value}."""
        answer = self.ask("AnalyzeUploads", taskId=self.task, **more)
        paths, out = {}, {}
        for e in answer.get("elements", []):
            parent = paths.get(e.get("parentId", 0), ()) if e.get("parentId", 0) != -1 else ()
            paths[e.get("id", 0)] = parent + (e["codeSignature"],)
            if int(e.get("self", 0)):
                out[paths[e.get("id", 0)]] = int(e["self"])
        return out, answer

    def ordinary(self, kind=CPU):
        found = self.server.merge_pprof(kind, '{service_name="%s"}' % self.service, self.now - 1000, self.now + 60_000)
        out = {}
        for lines, value in (Decoded(found).by_stack(0) if found else {}).items():
            out[tuple(line[0] for line in reversed(lines))] = value
        return out

    def test_a_pprof_is_kept_and_is_a_profile(self):
        self.told("pod-1", "pod-2")
        first, second = self.profile().encode(), self.profile(10).encode()
        self.assertEqual(agent.upload(self.server, agent.PPROF, self.service, "pod-1", self.task, first, 100), 0)
        self.assertEqual(agent.upload(self.server, agent.PPROF, self.service, "pod-2", self.task, second), 0)
        self.assertEqual(agent.upload(self.server, agent.PPROF, self.service, "pod-1", self.task, first), 0)  # again
        found = self.uploads()
        self.assertEqual([(u["instance"], u["format"], u["sizeBytes"]) for u in found],
                         [("pod-1", "pprof", str(len(first))), ("pod-2", "pprof", str(len(second)))])
        self.assertEqual([self.content(u) for u in found], [first, second])
        tree, answer = self.tree(instances=["pod-1"])
        self.assertEqual(answer["unit"], "nanoseconds")
        self.assertEqual(answer["sampleTypes"], ["samples", "cpu"])
        self.assertEqual(
            tree,
            {("root", "main:1", "handle:1", "query:1"): 30, ("root", "main:1", "handle:1"): 10, ("root", "main:1", "gc:1"): 20},
        )
        self.assertEqual([e["codeSignature"] for e in answer["elements"]], ["root", "main:1", "handle:1", "query:1", "gc:1"])
        both, _ = self.tree(sampleType="samples")
        self.assertEqual(sum(both.values()), 13 * 11)
        self.assertEqual(
            self.ordinary(), {("main", "handle", "query"): 330, ("main", "handle"): 110, ("main", "gc"): 220}
        )

    def analyze(self, *options, code=OK):
        """hearth task analyze: (standard output, standard error)."""
        env = {"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port}
        done = hearth("task", "analyze", self.task, *options, env=env)
        self.assertEqual(done.code, code, done.out + done.err)
        return done.out, done.err

    def test_the_client_prints_all_results_as_one_tree(self):
        self.told("pod-1", "pod-2", "pod-3")
        self.assertIn("hearth: no files of this pprof task", self.analyze(code=NO_DATA)[1])
        for instance, factor in (("pod-1", 1), ("pod-2", 10), ("pod-3", 100)):
            agent.upload(self.server, agent.PPROF, self.service, instance, self.task, self.profile(factor).encode())
        self.assertEqual(self.analyze(), ("""\
sample types: samples, cpu
         total            self  nanoseconds
          6660               0  root
          6660               0    main:1
          4440            1110      handle:1
          3330            3330        query:1
          2220            2220      gc:1
""", ""))
        chosen = ("--instances", "pod-1,pod-2", "--sample-type", "samples")
        self.assertEqual(self.analyze(*chosen)[0].splitlines()[1:3],
                         ["         total            self  count", "           143               0  root"])
        self.assertEqual(self.analyze(*chosen, "-o", "collapsed")[0],
                         "main:1;gc:1 99\nmain:1;handle:1 11\nmain:1;handle:1;query:1 33\n")
        self.assertEqual(stacks_of(embedded(self.analyze(*chosen, "-o", "html")[0])),
                         {("main:1", "gc:1"): 99, ("main:1", "handle:1"): 11, ("main:1", "handle:1", "query:1"): 33})
        self.assertIn('"weights":[99,11,33]', self.analyze(*chosen, "-o", "speedscope")[0])
        answer = json.loads(self.analyze(*chosen, "-o", "json")[0])
        self.assertEqual(answer, self.ask("AnalyzeUploads", taskId=self.task, instances=["pod-1", "pod-2"], sampleType="samples"))
        self.assertIn('no upload has the sample type "inuse"', self.analyze("--sample-type", "inuse", code=USAGE)[1])
        self.assertEqual(self.analyze("--instances", "pod-4", code=NO_DATA),
                         ("", "note: the task has no uploads of these instances\n"))

    def test_the_client_names_files_missing_from_the_tree(self):
        self.told("pod-1", "pod-2", "pod-3")
        agent.upload(self.server, agent.ASYNC, self.service, "pod-1", self.task, agent.jfr(b"and more"))
        note = "note: 1 upload has no sample type cpu\n"
        with self.assertRaises(server.RpcError) as caught:
            self.tree()
        self.assertEqual(caught.exception.code, "invalid_argument")
        p = Profile(TYPES, time_ns=self.now * 1_000_000).add(["idle"], [0, 0])
        agent.upload(self.server, agent.PPROF, self.service, "pod-2", self.task, p.encode())
        self.assertEqual(self.analyze(code=NO_DATA)[1], note + "hearth: the files have no samples of this type\n")
        agent.upload(self.server, agent.PPROF, self.service, "pod-3", self.task, self.profile().encode())
        out, err = self.analyze()
        self.assertEqual((out.splitlines()[2].split(), err), (["60", "0", "root"], note))

    def test_jfr_is_kept_whole(self):
        self.told("pod-1", kind="TASK_KIND_ASYNC_PROFILER", method=Instance.ASYNC)
        content = agent.jfr(bytes(range(256)) * 9000, b"")  # 2.3 MB: three pieces
        self.assertEqual(agent.upload(self.server, agent.ASYNC, self.service, "pod-1", self.task, content), 0)
        found = self.uploads()
        self.assertEqual([(u["format"], u["sizeBytes"]) for u in found], [("jfr", str(len(content)))])
        self.assertEqual(self.content(found[0]), content)

    # ---- as originals of listed profiles ----

    def listed(self):
        """The ids of the service's profiles."""
        filter = {"labels": [{"name": "service_name", "value": self.service}], "start": self.now - 60_000, "end": self.now + 60_000}
        answer = self.server.connect(LISTED + "ListProfiles", {"filter": filter, "ascending": True})
        return [row["id"] for row in answer.get("profiles", [])]

    def original(self, id, offset=0):
        """(name, size, bytes) of the only original of a profile."""
        (one,) = self.server.connect(LISTED + "GetProfile", {"id": id})["originals"]
        answer = self.server.connect(LISTED + "ReadOriginal", {"id": id, "offset": offset})
        self.assertEqual((answer["name"], answer["sizeBytes"]), (one["name"], one["sizeBytes"]))
        return one["name"], int(one["sizeBytes"]), base64.b64decode(answer.get("data", ""))

    def test_the_file_of_a_task_is_the_original_of_its_profile(self):
        self.told("pod-1", "pod-2")
        large = self.profile().encode(compress=False) + wire.encode([(99, os.urandom(2_300_000))])  # three pieces
        small = self.profile(10).encode()
        for instance, content in (("pod-1", large), ("pod-2", small)):
            self.assertEqual(agent.upload(self.server, agent.PPROF, self.service, instance, self.task, content), 0)
        names = {u["instance"]: u["uploadId"] + ".pprof" for u in self.uploads()}
        found = {self.original(id)[0]: id for id in self.listed()}
        self.assertEqual(sorted(found), sorted(names.values()))
        self.assertEqual(self.original(found[names["pod-2"]]), (names["pod-2"], len(small), small))
        id = found[names["pod-1"]]
        for offset in (0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2 << 20, len(large) - 1, len(large), 1 << 40):
            self.assertEqual(self.original(id, offset), (names["pod-1"], len(large), large[offset:]), offset)
        self.assertEqual(self.server.sql("SELECT count(*) FROM hearth_data.original"), [["0"]])  # no copy

        path = os.path.join(server.temporary_directory(), "task.pprof")
        done = hearth("profiles", "original", id, path, env={"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port})
        self.assertEqual(done.code, OK, done.err)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), large)

    def test_a_file_that_is_sent_again_after_an_hour_is_one_profile_with_its_original(self):
        self.told("pod-1")
        content = self.profile().encode()
        self.assertEqual(agent.upload(self.server, agent.PPROF, self.service, "pod-1", self.task, content), 0)
        (id,) = self.listed()
        self.server.sql("DELETE FROM hearth_data.push_id")  # which are kept for an hour
        self.assertEqual(agent.upload(self.server, agent.PPROF, self.service, "pod-1", self.task, content), 0)
        self.assertEqual(self.listed(), [id])
        self.assertEqual(self.original(id)[2], content)

    def test_the_recording_of_a_task_is_the_original_of_its_profiles(self):
        self.told("pod-1", kind="TASK_KIND_ASYNC_PROFILER", method=Instance.ASYNC)
        recording = gzip.decompress((server.ROOT / "tests/golden/jfr/work.jfr.gz").read_bytes())
        content = agent.moved_jfr(recording, self.now)
        self.assertEqual(agent.upload(self.server, agent.ASYNC, self.service, "pod-1", self.task, content), 0)
        (upload,) = self.uploads()
        (id,) = self.listed()
        self.assertEqual(self.original(id), (upload["uploadId"] + ".jfr", len(content), content))

        # It ends with the task.
        self.server.sql("DELETE FROM hearth_data.task_upload WHERE upload_id = '%s'" % upload["uploadId"])
        self.assertNotIn("originals", self.server.connect(LISTED + "GetProfile", {"id": id}))

    def test_recordings_are_one_tree_and_ordinary_profiles(self):
        self.told("pod-1", "pod-2", kind="TASK_KIND_ASYNC_PROFILER", method=Instance.ASYNC)
        recording = gzip.decompress((server.ROOT / "tests/golden/jfr/work.jfr.gz").read_bytes())
        for instance, later in (("pod-1", 0), ("pod-2", 1)):
            content = agent.moved_jfr(recording, self.now + later)
            self.assertEqual(agent.upload(self.server, agent.ASYNC, self.service, instance, self.task, content), 0)
        tree, answer = self.tree()
        self.assertEqual((answer["unit"], answer["tip"] if "tip" in answer else ""), ("nanoseconds", ""))
        self.assertEqual(sum(tree.values()), 2 * 140_000_000)
        self.assertTrue(any(frame.startswith("Work.burn:") for path in tree for frame in path), tree)
        self.assertIn("exceptions", answer["sampleTypes"])
        self.assertEqual(sum(self.tree(sampleType="exceptions", instances=["pod-1"])[0].values()), 5)
        self.assertEqual(sum(self.tree(sampleType="contentions")[0].values()), 2 * 2)  # of a monitor and of parking
        graph = self.server.flamegraph(
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds", '{service_name="%s",instance="pod-1"}' % self.service,
            self.now - 60_000, self.now + 60_000)
        self.assertEqual(graph.total, 140_000_000)

    def test_too_large_is_answered_and_logged(self):
        self.told("pod-1")
        stream = agent.Upload(self.server, agent.PPROF).send([agent.about(self.service, "pod-1", self.task, 0, 4 << 20)])
        self.assertEqual(stream.answer(), 2)
        self.assertEqual(stream.end(), [])
        self.assertEqual(self.uploads(), [])
        self.assertEqual([(i, e) for i, e, _ in self.log()], [("pod-1", "TASK_EVENT_TOO_LARGE")])
        self.assertIn("max-task-upload-bytes", self.log()[0][2])

    def test_failures_of_agents_are_logged(self):
        self.told("pod-1", "pod-2")
        before = self.outcomes()
        # The Go agent waits for an answer to its metadata; the Java agent says all at once.
        stream = agent.Upload(self.server, agent.PPROF).send([agent.about(self.service, "pod-1", self.task, 1, 0)])
        self.assertEqual(stream.answer(), 1)
        self.assertEqual(stream.send([(2, "no heap today")]).end(), [])
        stream = agent.Upload(self.server, agent.ASYNC)
        stream.send([agent.about(self.service, "pod-2", self.task, 1, -1), (2, "perf_event_open")])
        self.assertEqual(stream.end(), [])
        self.assertEqual(
            sorted(self.log()),
            [("pod-1", "TASK_EVENT_FAILED", "the agent reported an error: no heap today"),
             ("pod-2", "TASK_EVENT_FAILED", "the agent reported an error: perf_event_open")],
        )
        self.assertEqual([now - was for now, was in zip(self.outcomes(), before)], [0, 0, 2])

    def test_a_finished_upload_is_logged(self):
        self.told("pod-1")
        agent.upload(self.server, agent.PPROF, self.service, "pod-1", self.task, self.profile().encode())
        self.assertEqual(self.log(), [("pod-1", "TASK_EVENT_FINISHED", "")])

    def test_bad_uploads_leave_nothing(self):
        self.told("pod-1")
        good = self.profile().encode()
        about = lambda size: [agent.about(self.service, "pod-1", self.task, 0, size)]
        cases = [
            ([about(len(good)), [(3, good + b"x")]], "more bytes than its contentSize"),
            ([about(len(good) + 1), [(3, good)]], "ended after"),
            ([[(3, good)]], "before its metadata"),
            ([about(5), about(5)], "metadata twice"),
            ([about(0)], "contentSize"),
            ([[agent.about("", "pod-1", self.task, 0, 5)]], "service"),
            ([[agent.about(self.service, "pod-1", "", 0, 5)]], "taskId"),
            ([[agent.about(self.service, "pod-1", self.task, 9, 5)]], "type 9"),
            ([about(7), [(3, b"garbage")]], ""),
            ([about(40 << 10), [(3, gzip.compress(b"\0" * (65 << 20), 1)[: 40 << 10])]], ""),
        ]
        for messages, part in cases:
            with self.subTest(part=part):
                stream = agent.Upload(self.server, agent.PPROF)
                for message in messages:
                    stream.send(message)
                code, text = stream.error()
                self.assertEqual((code, part in text), (INVALID, True), text)
        self.assertEqual((self.uploads(), self.ordinary()), ([], {}))
        self.assertEqual(agent.Upload(self.server, agent.PPROF).end(), [])  # nothing was said

    def test_a_go_profile_of_traced_requests_is_divided_by_segment(self):
        p = Profile(TYPES, time_ns=self.now * 1_000_000)
        for i, segment in enumerate(("s1", "s2", "s1", None)):
            labels = {"traceSegmentID": segment, "traceID": "t.1.2", "spanID": "0"} if segment else {}
            p.add(["main", "f%d" % i], [1, 10 + i], labels)
        content = p.encode()
        self.told("pod-1", kind="TASK_KIND_TRACE", method=Instance.TRACE, endpoint="/go", minDurationMs=0, dumpPeriodMs=10, maxSamples=5)
        stream = agent.go_report(self.task, content, 50)
        agent.collect(self.server, stream + [wire.encode([(2, b"of nobody"), (3, True)])] + stream, agent.GO)
        found = self.uploads()
        self.assertEqual([self.content(u) for u in found], [content])
        segments = self.server.sql("SELECT segment_id, n_samples FROM hearth_data.task_go_segment ORDER BY 1")
        self.assertEqual(segments, [["s1", "2"], ["s2", "1"]])
        self.assertEqual(self.ordinary(), {("main", "f%d" % i): 10 + i for i in range(4)})
        names = self.server.label_names(self.now - 1000, self.now + 1000, ['{service_name="%s"}' % self.service])
        self.assertNotIn("traceSegmentID", names)
        with self.assertRaises(grpc.RpcError) as caught:
            agent.collect(self.server, agent.go_report(self.task, b"no pprof"), agent.GO)
        self.assertEqual(caught.exception.code(), INVALID)

    def test_snapshots_left_by_a_lost_server_become_a_profile_without_a_repeat(self):
        self.told("pod-1")
        content = self.profile().encode()  # the same bytes whenever it is sent
        second = server.Server(database_url=self.server.postgres_url())
        session = server.Session(self.server.postgres_url())
        left = "SELECT count(*) FROM hearth_data.task_upload WHERE NOT is_pushed"
        try:
            session.run("BEGIN; LOCK TABLE hearth_data.push_id")  # files are written, no profiles are

            def deliver():
                with self.assertRaises(grpc.RpcError):
                    agent.upload(second, agent.PPROF, self.service, "pod-1", self.task, content)

            thread = threading.Thread(target=deliver)
            thread.start()
            server.eventually(lambda: self.server.sql(left) == [["1"]], what="a file")
            second.kill9()
            thread.join()
            self.assertEqual((len(self.uploads()), self.ordinary()), (1, {}))
            # Its server has had the time to do it.
            self.server.sql("UPDATE hearth_data.task_upload SET received_at = received_at - 120000 WHERE NOT is_pushed")
        finally:
            session.close()
        server.eventually(lambda: self.server.sql(left) == [["0"]], 90, 0.5, what="the profile of what was left")
        expected = {("main", "handle", "query"): 30, ("main", "handle"): 10, ("main", "gc"): 20}
        self.assertEqual(self.ordinary(), expected)
        # Who sends it again after all adds nothing.
        agent.upload(self.server, agent.PPROF, self.service, "pod-1", self.task, content)
        self.assertEqual(self.ordinary(), expected)

    def test_files_of_unknown_tasks_or_of_instances_without_the_task_are_refused(self):
        content, missing = self.profile().encode(), grpc.StatusCode.NOT_FOUND
        self.told("pod-1")
        untold = grpc.StatusCode.FAILED_PRECONDITION
        before = self.outcomes()
        cases = [
            (agent.about(self.service, "pod-1", "task-none", 0, len(content)), missing, "task-none"),
            (agent.about(self.service, "pod-2", self.task, 0, len(content)), untold, 'not handed out to instance "pod-2"'),
            (agent.about("another", "pod-1", self.task, 0, len(content)), untold, 'of service "another"'),
            (agent.about(self.service, "pod-2", self.task, 1, 0), untold, "not handed out"),
        ]
        for method in (agent.PPROF, agent.ASYNC):
            for about, code, part in cases:
                found, text = agent.Upload(self.server, method).send([about]).error()
                self.assertEqual((found, part in text), (code, True), text)
        self.assertEqual((self.uploads(), self.log()), ([], []))
        self.create("TASK_KIND_TRACE", endpoint="/go", dumpPeriodMs=10, maxSamples=5)
        for task, code, part in (("task-none", missing, "task-none"), (self.task, untold, "was handed out to nobody")):
            with self.assertRaises(grpc.RpcError) as caught:
                agent.collect(self.server, agent.go_report(task, content), agent.GO)
            self.assertEqual((caught.exception.code(), part in caught.exception.details()), (code, True))
        self.assertEqual((self.uploads(), self.log()), ([], []))
        self.assertEqual([now - was for now, was in zip(self.outcomes(), before)], [0, 10, 0])

    def test_bytes_that_are_no_recording_are_refused(self):
        self.told("pod-1", kind="TASK_KIND_ASYNC_PROFILER", method=Instance.ASYNC)
        before = self.outcomes()
        for content, part in ((b"11 arbitrar", "not a JFR recording"), (agent.jfr(b"x" * 100)[:-1], "are left")):
            stream = agent.Upload(self.server, agent.ASYNC).send([agent.about(self.service, "pod-1", self.task, 0, len(content))])
            self.assertEqual(stream.answer(), 0)
            code, text = stream.send([(3, content)]).error()
            self.assertEqual((code, part in text), (INVALID, True), text)
            ((instance, event, message),) = self.log()
            self.assertEqual((instance, event, part in message), ("pod-1", "TASK_EVENT_FAILED", True))
        self.assertEqual(self.uploads(), [])
        self.assertEqual([now - was for now, was in zip(self.outcomes(), before)], [0, 2, 0])

    def test_real_recordings_are_taken(self):
        paths = sorted((server.SHARED / "jfr").glob("*.jfr*"))
        if not paths:
            self.skipTest("no recordings here")
        self.told("pod-1", kind="TASK_KIND_ASYNC_PROFILER", method=Instance.ASYNC)
        contents = [gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes() for p in paths]
        contents = [agent.moved_jfr(c, self.now) for c in contents if len(c) <= 3 << 20]
        for content in contents:
            self.assertEqual(agent.upload(self.server, agent.ASYNC, self.service, "pod-1", self.task, content), 0)
        self.assertEqual(len(self.uploads()), len(contents))
        # One of them has allocations and live objects: two profiles with the same name and labels.
        for profile_type in ("memory:live:count:objects:count", "memory:alloc_in_new_tlab_objects:count:space:bytes"):
            graph = self.server.flamegraph(
                profile_type, '{service_name="%s"}' % self.service, self.now - 60_000, self.now + 60_000)
            self.assertGreaterEqual(graph.total, 4, profile_type)

    def test_queries_that_make_no_sense_are_refused(self):
        self.told("pod-1")
        agent.upload(self.server, agent.PPROF, self.service, "pod-1", self.task, self.profile().encode())
        cases = [
            ("ListUploads", {}, "invalid_argument"),
            ("GetUpload", {}, "invalid_argument"),
            ("GetUpload", {"uploadId": "0" * 32}, "not_found"),
            ("AnalyzeUploads", {}, "invalid_argument"),
            ("AnalyzeUploads", {"taskId": self.task, "sampleType": "alloc_space"}, "invalid_argument"),
        ]
        for method, request, code in cases:
            with self.subTest(method=method, request=request), self.assertRaises(server.RpcError) as caught:
                self.ask(method, **request)
            self.assertEqual(caught.exception.code, code)
        self.assertIn("no uploads", self.ask("AnalyzeUploads", taskId="nobody")["tip"])


class LeftBehind(unittest.TestCase):
    """More results than are looked at together whose push fails each time, and a later one whose server was lost."""

    @classmethod
    def setUpClass(cls):
        cls.server = server.Server("--max-label-value-bytes", "50")
        cls.long = "pod-" + 60 * "x"

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def pushed_later(self, table, key):
        """The row was left; it becomes a profile."""
        self.server.sql("UPDATE hearth_data.%s SET is_pushed = false WHERE %s" % (table, key))
        found = lambda: self.server.sql("SELECT 1 FROM hearth_data.%s WHERE is_pushed AND %s" % (table, key))
        server.eventually(found, 60, 0.5, what="the profile of what was left")

    def test_files_that_always_fail_do_not_hold_up_others(self):
        task = tasks.create(self.server, "PPROF", service="files", events=["cpu"], instances=[self.long, "pod"])
        contents = [Profile(TYPES, time_ns=server.now_ms() * 1_000_000 + k) for k in range(22)]
        for k, content in enumerate(contents):
            content.add(["main"], [1, k], {})
        for instance, some in ((self.long, contents[:-1]), ("pod", contents[-1:])):
            self.assertEqual(len(Instance(self.server, "files", instance).query_tasks(Instance.PPROF)), 1)
            for content in some:
                try:
                    agent.upload(self.server, agent.PPROF, "files", instance, task, content.encode())
                except grpc.RpcError as error:
                    self.assertEqual((error.code(), instance), (INVALID, self.long))
        self.server.sql("UPDATE hearth_data.task_upload SET received_at = received_at - 120000")
        self.pushed_later("task_upload", "instance = 'pod'")

    def test_stack_traces_that_always_fail_do_not_hold_up_others(self):
        rover, now = Rover(self.server), server.now_ms()
        long, short = (Process("stacks", instance, "app") for instance in (self.long, "pod"))
        rover.report(long, short)
        for k in range(22):
            process = short if k == 21 else long
            about = agent.metadata("task", process.process_id, now - 300_000, now - 200_000 + k)
            try:
                agent.collect(self.server, [agent.on_cpu((1, 2), 3, "", "main-work", about)])
            except grpc.RpcError as error:
                self.assertEqual((error.code(), process), (INVALID, long))
        self.pushed_later("task_stack_chunk", "at = %d" % (now - 200_000 + 21))

    def test_damaged_stack_traces_do_not_hold_up_others(self):
        rover, now = Rover(self.server), server.now_ms()
        process = Process("damaged", "pod", "app")
        rover.report(process)
        ends = [now - 180_000, now - 170_000]
        for at in ends:
            about = agent.metadata("torn", process.process_id, now - 300_000, at)
            agent.collect(self.server, [agent.on_cpu((1, 2), 3, "", "main-work", about)])
        self.server.sql(
            "UPDATE hearth_data.task_stack_chunk SET is_pushed = false, payload = '\\x00' WHERE at = %d" % ends[0]
        )
        self.pushed_later("task_stack_chunk", "at = %d" % ends[1])
        damaged = 'stack traces of task \\"torn\\", flushed at %d ms, are damaged' % ends[0]
        server.eventually(lambda: damaged in self.server.log(), what="the warning")


if __name__ == "__main__":
    unittest.main()
