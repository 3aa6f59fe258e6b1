"""Trace tasks: from their creation through commands, snapshots and segments to requests and trees with durations."""

import json
import tempfile
import threading
import unittest
import uuid

import prometheus
import wire
from agents import EXIT, LOCAL, Instance, reference, snapshot, span
from pprof import Profile
from server import Cluster, RpcError, Server, Session, eventually, now_ms
from task_data import GO
from test_cli import NO_DATA, OK, USAGE, hearth

TASKS = "hearth.v1.TaskService/"
ENDPOINT = "/checkout"


def new_task(server, service, **more):
    """A trace task, as people make one; its id."""
    request = {"kind": "TASK_KIND_TRACE", "service": service, "endpoint": ENDPOINT, "durationMs": 60_000,
               "minDurationMs": 0, "dumpPeriodMs": 10, "maxSamples": 5, **more}
    return server.connect(TASKS + "CreateTask", request)["task"]["taskId"]


def segments_of(server, task_id):
    answer = server.connect(TASKS + "ListSegments", {"taskId": task_id})
    return answer.get("segments", []), answer.get("tip", "")


def analyze(server, *queries):
    """{path: (count, duration, self)} and the tip; a query is a segment id or (id, start, end)."""
    asked = [
        {"segmentId": q} if isinstance(q, str) else {"segmentId": q[0], "range": {"startMs": str(q[1]), "endMs": str(q[2])}}
        for q in queries
    ]
    answer = server.connect(TASKS + "AnalyzeSegments", {"queries": asked})
    found = {}
    for tree in answer.get("trees", []):
        paths = {0: ""}
        for e in tree["elements"]:
            parent = e.get("parentId", 0)
            paths[e["id"]] = (paths[parent] + "/" if parent else "") + e["codeSignature"]
            numbers = (e.get("count", 0), e.get("durationMs", 0), e.get("durationChildExcludedMs", 0))
            found[paths[e["id"]]] = tuple(int(n) for n in numbers)
    return found, answer.get("tip", "")


# Four dumps, 10 ms apart, and what comes of them.
DUMPS = [["A", "B", "C"], ["A", "B", "C", "A"], ["A", "C", "A"], ["A", "B", "C", "B"]]
TREE = {"A": (4, 30, 20), "A/B": (3, 10, 0), "A/B/C": (3, 10, 10), "A/B/C/A": (1, 0, 0), "A/B/C/B": (1, 0, 0),
        "A/C": (1, 0, 0), "A/C/A": (1, 0, 0)}


def dumps(task_id, segment_id, start_ms, stacks=DUMPS):
    return [snapshot(task_id, segment_id, i, start_ms + 10 * i, frames) for i, frames in enumerate(stacks)]


class OneServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-segment-spans", "20", "--max-span-text-bytes", "64", "--max-snapshot-frames", "30",
                            "--max-analyzed-segments", "5")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = "shop-" + uuid.uuid4().hex[:8]
        self.agent = Instance(self.server, self.service, self.service + "-1")

    def refused(self, call, part, code="invalid_argument"):
        with self.assertRaises(RpcError) as caught:
            call()
        self.assertEqual(caught.exception.code, code)
        self.assertIn(part, caught.exception.message)

    def stored(self, table, where="true"):
        return int(self.server.sql("SELECT count(*) FROM hearth_data.%s WHERE %s" % (table, where))[0][0])

    def test_a_trace_task_is_created_delivered_and_analysed(self):
        self.agent.report()
        task = new_task(self.server, self.service)
        told = self.agent.query_tasks("skywalking.v3.ProfileTask/getProfileTaskCommands")
        self.assertEqual([a["TaskId"] for _, a in told], [task])
        start = now_ms() - 1000
        self.agent.send_snapshots(*dumps(task, "seg-1-" + task, start))
        self.agent.send_segments(self.agent.segment("trace-" + task, "seg-1-" + task, [
            span(1, "SELECT", start + 5, start + 20, 0, EXIT, peer="db:5432", layer=1, component=22, tags={"db.type": "sql"}),
            span(0, ENDPOINT, start, start + 200, error=True, logs=[(start + 7, {"event": "error", "message": "no"})]),
        ]))
        self.agent.finish_task(task)
        found, tip = segments_of(self.server, task)
        self.assertEqual((len(found), tip), (1, ""))
        request = found[0]
        self.assertEqual(request["traceId"], "trace-" + task)
        self.assertEqual((request["instance"], request["endpoints"]), (self.agent.instance, [ENDPOINT]))
        self.assertEqual((request["startMs"], request["durationMs"]), (str(start), "200"))
        entry, select = request["spans"]
        self.assertEqual(entry, {
            "segmentId": "seg-1-" + task, "parentSpanId": -1, "service": self.service, "instance": self.agent.instance,
            "startMs": str(start), "endMs": str(start + 200), "endpoint": ENDPOINT, "type": "ENTRY", "layer": "HTTP",
            "componentId": 7001, "component": "Flask", "isError": True, "isProfiled": True,
            "logs": [{"atMs": str(start + 7), "data": [{"key": "event", "value": "error"}, {"key": "message", "value": "no"}]}],
        })
        self.assertEqual((select["spanId"], select["type"], select["layer"], select["component"], select["peer"]),
                         (1, "EXIT", "DATABASE", "PostgreSQL", "db:5432"))
        self.assertEqual(select["tags"], [{"key": "db.type", "value": "sql"}])
        self.assertEqual(analyze(self.server, "seg-1-" + task), (TREE, ""))
        part, _ = analyze(self.server, ("seg-1-" + task, start, start + 10))
        self.assertEqual(part["A"], (2, 10, 0))
        self.assertEqual(analyze(self.server, ("seg-1-" + task, start + 31, start + 40)), ({}, "Data not found"))
        state = self.server.connect(TASKS + "GetTask", {"taskId": task})["task"]["state"]
        self.assertNotIn(state, ("TASK_STATE_NOTHING_SAMPLED", "TASK_STATE_NEVER_DELIVERED"))

    def test_repeated_data_counts_once(self):
        task = new_task(self.server, self.service)
        start = now_ms()
        all_dumps = dumps(task, "twice-" + task, start)
        segment = self.agent.segment("t", "twice-" + task, [span(0, ENDPOINT, start, start + 100)])
        for part in (all_dumps, all_dumps[1:3], all_dumps, all_dumps[2:]):
            self.agent.send_snapshots(*part)
            self.agent.send_segments(segment, segment)
        self.agent.send_segments_in_sync(segment)
        self.assertEqual(analyze(self.server, "twice-" + task), (TREE, ""))
        self.assertEqual(self.stored("span_group", "endpoint = '%s' AND segment_id = 'twice-%s'" % (ENDPOINT, task)), 1)
        self.assertEqual(len(segments_of(self.server, task)[0]), 1)

    def test_segments_of_other_threads_belong_to_a_request_and_foreign_ones_do_not(self):
        task = new_task(self.server, self.service)
        other = Instance(self.server, self.service, self.service + "-2")
        start, trace = now_ms() - 500, "trace-" + task
        ids = {name: "%s-%s" % (name, task) for name in "ABCDEFG"}
        ref = lambda name, across_threads=True: [reference(trace, ids[name], 0, across_threads)]
        self.agent.send_snapshots(*dumps(task, ids["A"], start), *dumps(task, ids["B"], start, [["T", "U"], ["T", "U"]]),
                                  snapshot(task, ids["D"], 0, start, ["D"]), snapshot(task, ids["F"], 0, start, ["F"]))
        self.agent.send_segments(
            self.agent.segment(trace, ids["B"], [span(0, "thread", start + 5, start + 50, kind=LOCAL, refs=ref("A"))]),
            self.agent.segment(trace, ids["A"], [span(0, ENDPOINT, start, start + 40)]),
            self.agent.segment(trace, ids["C"], [span(0, "/next", start + 10, start + 20, refs=ref("B", False))]),
            self.agent.segment(trace, ids["D"], [span(0, "lost", start + 20, start + 30, kind=LOCAL, refs=[reference(trace, "Z")])]),
            self.agent.segment("another", ids["E"], [span(0, ENDPOINT, start, start + 40)]),
        )
        other.send_segments(other.segment(trace, ids["G"], [span(0, "far", start, start + 1, kind=LOCAL, refs=ref("A"))]))
        found, tip = segments_of(self.server, task)
        order = [[s["segmentId"][0] for s in request["spans"]] for request in found]
        self.assertEqual(order, [["D"], ["A", "B"]])  # the latest first; C is another process's, and not profiled
        self.assertEqual(found[1]["endpoints"], [ENDPOINT, "thread"])
        self.assertEqual(found[1]["durationMs"], "50")
        thread = found[1]["spans"][1]
        self.assertEqual((thread["references"][0]["type"], thread["references"][0]["parentSegmentId"]), ("CROSS_THREAD", ids["A"]))
        self.assertIn("1 of 4 profiled segments are not there", tip)
        self.assertIn(ids["F"], tip)
        trees, _ = analyze(self.server, ids["A"], ids["B"])
        self.assertEqual((trees["A"], trees["T/U"]), ((4, 30, 20), (2, 10, 10)))

    def test_profiles_of_go_programs_stand_in_where_there_are_no_snapshots(self):
        self.agent.report()
        task, now = new_task(self.server, self.service), now_ms()
        self.agent.query_tasks(Instance.TRACE)
        profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=now * 1_000_000)
        profile.add(["main", "serve", "query"], [5, 50_000_000], {"traceID": "t", "traceSegmentID": "go-a-" + task})
        profile.add(["main", "serve"], [2, 20_000_000], {"traceSegmentID": "go-a-" + task})
        profile.add(["main", "serve"], [9, 90_000_000], {"traceSegmentID": "go-b-" + task})
        profile.add(["main", "gc"], [30, 300_000_000])
        content = profile.encode()
        self.agent.collect(GO, [[(1, task), (2, content[:100])], [(1, task), (2, content[100:]), (3, True)]])
        for name in ("go-a-", "go-b-"):
            self.agent.send_segments(self.agent.segment("t", name + task, [span(0, ENDPOINT, now, now + 200)]))
        found, tip = segments_of(self.server, task)
        self.assertEqual(sorted(r["spans"][0]["segmentId"] for r in found), ["go-a-" + task, "go-b-" + task])
        self.assertEqual(tip, "")
        self.assertTrue(all(r["spans"][0]["isProfiled"] for r in found))
        tree, tip = analyze(self.server, ("go-a-" + task, 1, 2))
        self.assertEqual(tree, {"main:1": (7, 70, 0), "main:1/serve:1": (7, 70, 20), "main:1/serve:1/query:1": (5, 50, 50)})
        self.assertEqual(tip, "")

    def test_the_command_line_shows_segments_and_spans(self):
        url = "http://127.0.0.1:%d" % self.server.port
        task, start = new_task(self.server, self.service), now_ms()
        self.agent.send_snapshots(*dumps(task, "cli-" + task, start))
        self.agent.send_segments(self.agent.segment("t-" + task, "cli-" + task, [
            span(0, ENDPOINT, start, start + 2000, error=True),
            span(1, "SELECT", start, start + 20, 0, EXIT, peer="db:5432", layer=1, component=22),
        ]))
        ran = hearth("--url", url, "task", "segments", task)
        self.assertEqual(ran.code, OK, ran.err)
        for text in ("  2 s  ", ENDPOINT, "cli-%s  has snapshots" % task, "ENTRY    %s  Flask  failed" % ENDPOINT,
                     "EXIT       SELECT  PostgreSQL  to db:5432"):
            self.assertIn(text, ran.out)
        ran = hearth("--url", url, "task", "threads", "cli-" + task)
        self.assertEqual(ran.code, OK, ran.err)
        self.assertEqual(ran.out.splitlines()[0], "segment cli-" + task)
        lines = [line.split(maxsplit=5) for line in ran.out.splitlines()[1:]]
        self.assertEqual(lines[0], ["duration", "self", "dumps", "code"])
        self.assertEqual([line[-1].strip() for line in lines[1:]], ["A", "B", "C", "A", "B", "C", "A"])
        self.assertTrue(ran.out.splitlines()[4].endswith("      C"), ran.out)
        ran = hearth("--url", url, "task", "threads", "cli-%s@%d-%d" % (task, start, start + 10), "--output", "json")
        self.assertEqual(json.loads(ran.out)["trees"][0]["elements"][0]["durationMs"], "10")
        self.assertEqual(hearth("--url", url, "task", "threads", "cli-%s@1" % task).code, USAGE)
        ran = hearth("--url", url, "task", "threads", "nobody")
        self.assertEqual((ran.code, "no snapshots of segment nobody; hearth task segments" in ran.err), (NO_DATA, True))

    def test_the_command_line_takes_a_task_for_all_of_its_segments(self):
        url = "http://127.0.0.1:%d" % self.server.port
        task, start = new_task(self.server, self.service), now_ms()
        ran = hearth("--url", url, "task", "threads", task)
        self.assertEqual((ran.code, "no segments of this trace task" in ran.err), (NO_DATA, True), ran.err)
        for name in ("one-", "two-"):
            self.agent.send_snapshots(*dumps(task, name + task, start))
            self.agent.send_segments(self.agent.segment("t-" + name + task, name + task, [
                span(0, ENDPOINT, start, start + 200), span(1, "SELECT", start, start + 20, 0, EXIT)]))
        ran = hearth("--url", url, "task", "threads", task)
        self.assertEqual(ran.code, OK, ran.err)
        self.assertEqual(ran.out, hearth("--url", url, "task", "threads", "one-" + task, "two-" + task).out)
        self.assertEqual(ran.out.splitlines()[0], "segments one-%s, two-%s" % (task, task))
        self.assertEqual(ran.out.splitlines()[2].split(), ["60", "ms", "40", "ms", "8", "A"])
        with tempfile.NamedTemporaryFile() as archive:
            self.assertEqual(hearth("--url", url, "task", "export", task, archive.name).code, OK)
            imported = hearth("--url", url, "task", "import", archive.name).out.split()[0]
        self.assertEqual(hearth("--url", url, "task", "threads", imported).out, ran.out)

    def test_empty_streams_and_data_of_unknown_tasks_are_accepted(self):
        self.assertEqual(self.agent.send_segments(), [])
        self.assertEqual(self.agent.send_snapshots(), [])
        unknown = "1700000000000_" + uuid.uuid4().hex
        self.assertEqual(self.agent.send_snapshots(*dumps(unknown, "s", now_ms())), [])
        self.assertEqual(self.stored("task_snapshot", "task_id = '%s'" % unknown), 0)
        self.refused(lambda: segments_of(self.server, unknown), unknown, "not_found")

    def test_an_endless_stream_is_stored_as_it_arrives(self):
        task, go_on = new_task(self.server, self.service), threading.Event()
        start = now_ms()

        def messages(make):
            yield wire.encode(make)
            go_on.wait(60)

        calls = [
            (Instance.SEGMENTS + "collect", self.agent.segment("t", "open-" + task, [span(0, ENDPOINT, start, start + 5)])),
            (Instance.SNAPSHOTS, snapshot(task, "open-" + task, 0, start, ["A"])),
        ]
        try:
            streams = [self.server.channel.stream_unary("/" + m).future(messages(fields)) for m, fields in calls]
            eventually(lambda: len(segments_of(self.server, task)[0]) == 1, what="the segment of an open stream")
            eventually(lambda: analyze(self.server, "open-" + task)[0], what="the snapshot of an open stream")
        finally:
            go_on.set()
        self.assertEqual([stream.result(60) for stream in streams], [b"", b""])

    def test_oversize_values_are_cut(self):
        task = new_task(self.server, self.service)
        start = now_ms()
        spans = [span(i, "n" * 100, start + i, start + 100, i - 1, tags={"k": "ü" * 100}) for i in range(50)]
        self.agent.send_segments(self.agent.segment("t", "large-" + task, spans))
        self.agent.send_snapshots(snapshot(task, "large-" + task, 0, start, ["f%d" % i for i in range(100)]))
        request = segments_of(self.server, task)[0][0]
        self.assertEqual(len(request["spans"]), 20)
        self.assertEqual(request["spans"][0]["endpoint"], "n" * 64)
        self.assertEqual(request["spans"][0]["tags"], [{"key": "k", "value": "ü" * 32}])
        tree, tip = analyze(self.server, "large-" + task)
        self.assertEqual(max(path.count("/") for path in tree), 29)
        self.assertIn("1 snapshots were cut when they came (max-snapshot-frames, max-symbol-bytes)", tip)
        url = "http://127.0.0.1:%d" % self.server.port
        self.assertIn("note: 1 snapshots were cut when they came", hearth("--url", url, "task", "threads", "large-" + task).err)
        self.assertEqual(self.stored("span_group", "segment_id = 'large-%s' AND flags & 4 = 4" % task), 1)

    def test_invalid_segments_are_refused_and_not_stored(self):
        task, now = new_task(self.server, self.service), now_ms()
        good = [span(0, ENDPOINT, now, now + 1)]
        agent = self.agent
        nameless = Instance(self.server, "", "i")
        for segment, part in (
            (agent.segment("", "s", good), "trace id"), (agent.segment("t", "", good), "segment id"),
            (agent.segment("t", "s", []), "no spans"), (agent.segment("t" * 600, "s", good), "600 bytes"),
            (nameless.segment("t", "s", good), "no service"),
        ):
            self.refused(lambda: agent.send_segments(segment), part)
            self.refused(lambda: agent.send_segments_in_sync(agent.segment("t", "bad-" + task, good), segment), part)
        self.assertEqual(self.stored("span_group", "segment_id = 'bad-%s'" % task), 0)
        for bad, part in (
            (snapshot("", "s", 0, now, ["A"]), "task id"), (snapshot(task, "", 0, now, ["A"]), "segment id"),
            (snapshot(task, "s", -1, now, ["A"]), "-1"), (snapshot(task, "s", 0, 0, ["A"]), "time 0"),
        ):
            self.refused(lambda: agent.send_snapshots(bad), part)
        self.refused(lambda: self.server.stream_unary(Instance.SNAPSHOTS, [b"\x0a\xff\xff"]), "")
        self.refused(lambda: analyze(self.server), "max-analyzed-segments")
        self.refused(lambda: analyze(self.server, *"abcdef"), "max-analyzed-segments")
        self.refused(lambda: analyze(self.server, ("s", 2, 1)), "after its end")
        self.refused(lambda: analyze(self.server, ""), "no segment id")

    def test_times_beyond_retention_are_left_out(self):
        day, now = 86_400_000, now_ms()
        def of(name, at):
            return self.agent.segment("t", name + self.service, [span(0, ENDPOINT, at, at + 1)])
        self.agent.send_segments(of("old", now - 4 * day), of("future", now + 3_600_000), of("zero", 0), of("far", 1 << 62),
                                 of("good", now))
        found = self.server.sql("SELECT convert_from(segment_id, 'UTF8') FROM hearth_data.span_group WHERE instance = '%s'"
                                % self.agent.instance)
        self.assertEqual(found, [["good" + self.service]])

    def test_other_tasks_have_no_segments(self):
        self.agent.report()
        request = {"kind": "TASK_KIND_PPROF", "service": self.service, "instances": [self.agent.instance], "events": ["cpu"],
                   "durationMs": 60_000}
        task = self.server.connect(TASKS + "CreateTask", request)["task"]["taskId"]
        self.refused(lambda: segments_of(self.server, task), "is not a trace task")

    def test_the_service_and_its_instance_are_known_by_their_segments(self):
        now = now_ms()
        self.agent.send_segments(self.agent.segment("t", "known-" + self.service, [span(0, ENDPOINT, now, now + 1)]))
        answer = self.server.connect("hearth.v1.ProcessService/ListInstances", {"service": self.service})
        self.assertEqual([i["instance"] for i in answer["instances"]], [self.agent.instance])

    def test_spans_do_not_wait_for_other_work_of_their_tenant(self):
        now = now_ms()
        self.agent.send_segments(self.agent.segment("t", "before-" + self.service, [span(0, ENDPOINT, now, now + 1)]))
        other = Instance(self.server, self.service, "new-one")
        session = Session(self.server.postgres_url())
        try:  # the lock of transactions that count what a tenant has
            session.run("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended(name, 4721170935208671310)) FROM hearth_data.tenant")
            other.send_segments(other.segment("t", "while-" + self.service, [span(0, ENDPOINT, now, now + 1)]))
            self.assertEqual(self.stored("span_group", "instance = 'new-one'"), 1)
            self.assertEqual(self.stored("instance", "name = 'new-one'"), 0)
        finally:
            session.close()

    def test_times_of_snapshots_are_bounded(self):
        for at_ms in (0, -1, 2**63 - 1):
            self.refused(lambda: self.agent.send_snapshots(snapshot("t", "s", 0, at_ms, ["a"])), "time")


class TwoServers(unittest.TestCase):
    def test_servers_that_share_a_database_restart_and_lose_it(self):
        cluster = Cluster()
        first, second = Server(database_url=cluster.url()), Server(database_url=cluster.url())
        agent = Instance(first, "shop", "shop-1")
        agent.report()
        task = new_task(second, "shop")
        agent.query_tasks("skywalking.v3.ProfileTask/getProfileTaskCommands")
        start = now_ms()
        all_dumps = dumps(task, "seg", start)
        agent.send_snapshots(*all_dumps[:2])
        first.kill9()
        agent.server = second
        agent.send_snapshots(*all_dumps[1:3])
        # The database goes and comes back: a client that is refused sends it again.
        cluster.stop()
        cluster.start()

        def sent():
            try:
                agent.send_snapshots(*all_dumps[2:])
                agent.send_segments(agent.segment("t", "seg", [span(0, ENDPOINT, start, start + 90)]))
                return True
            except RpcError as error:
                self.assertEqual(error.code, "unavailable")
                return False

        eventually(sent, 60, 0.5, "an agent that is heard again")
        first.start()
        for server in (first, second):
            self.assertEqual(analyze(server, "seg"), (TREE, ""))
            self.assertEqual([s["segmentId"] for s in segments_of(server, task)[0][0]["spans"]], ["seg"])
        first.stop()
        second.stop()
        cluster.stop()


class Kept(unittest.TestCase):
    def test_the_list_has_only_services_with_a_task_or_is_empty(self):
        now = now_ms()
        server = Server("--agent-segments-keep", "profiled")
        for keep in ("profiled", "none"):
            if keep == "none":
                server.terminate()
                server.options = ["--agent-segments-keep", "none"]
                server.start()
            with_task, without = Instance(server, "with-" + keep, "i"), Instance(server, "without-" + keep, "i")
            with_task.report()
            task = new_task(server, "with-" + keep)
            with_task.send_snapshots(*dumps(task, "s-" + keep, now))
            for agent in (with_task, without):
                agent.send_segments(agent.segment("t", "s-" + keep, [span(0, ENDPOINT, now, now + 1)]))
            found, tip = segments_of(server, task)
            self.assertEqual(len(found), 1 if keep == "profiled" else 0)
            self.assertEqual(analyze(server, "s-" + keep), (TREE, ""))
            if keep == "none":
                self.assertIn("agent-segments-keep", tip)
        self.assertEqual(server.sql("SELECT count(*) FROM hearth_data.span_group"), [["1"]])
        server.stop()


class Bounded(unittest.TestCase):
    def test_segments_beyond_the_rate_or_size_are_dropped_or_cut(self):
        server = Server("--max-segment-rate", "5", "--max-segment-bytes", "2k")
        agent, now = Instance(server, "shop", "i"), now_ms()
        spans = [span(i, "operation number %d" % i, now, now + 1, i - 1, tags={"q": "%d" % i * 200}) for i in range(90)]
        agent.send_segments_in_sync(*[agent.segment("t", "s%d" % i, spans) for i in range(20)])
        stored, cut, largest = server.sql(
            "SELECT count(*), count(*) FILTER (WHERE flags & 4 = 4), max(n_spans) FROM hearth_data.span_group")[0]
        dropped = prometheus.value(server.metrics(), "hearth_segments_dropped_total", reason="rate")
        self.assertEqual((stored, cut, dropped), ("5", "5", 15))
        self.assertTrue(1 <= int(largest) < 90, largest)
        found = server.sql("SELECT max(length(spans)) FROM hearth_data.span_group")
        self.assertLessEqual(int(found[0][0]), 2049)
        server.stop()


if __name__ == "__main__":
    unittest.main()
