"""Exported trace tasks, sampling rules and causes: what comes back out of them elsewhere, and what is refused."""

import base64
import struct
import unittest

import server
import task_data as agent
import tasks
from agents import LOCAL, Instance, Process, Rover, reference, snapshot, span
from policy_agents import cause, report_task


def frame(content):
    """A zstd frame of blocks that are not compressed."""
    size = 1 << 17
    blocks = [content[i : i + size] for i in range(0, len(content), size)]
    head = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(content))
    last = len(blocks) - 1
    return head + b"".join(struct.pack("<I", (len(b) << 3) | (i == last))[:3] + b for i, b in enumerate(blocks))


def number(value):
    """A varint of the zigzag form."""
    return count(value << 1 if value >= 0 else (-value << 1) - 1)


def count(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return count(len(value)) + value


def archive(kind=4, sampling="", causes="", records=b""):
    """A task of `shop` with these records behind it."""
    texts = ["id", "shop", "", "", "", "/buy", "", sampling, causes]
    numbers = [kind, 1, 1_760_000_000_000, 60_000, 1_760_000_000_000, 0, 0, 10, 5]
    return b"hearth task 1\n\1" + b"".join(map(text, texts)) + b"".join(map(number, numbers)) + b"\0\0\0" + records + b"\6"


class TraceExport(unittest.TestCase):
    """From one server to another."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = server.Cluster()
        cls.server, cls.other = cls.new("here"), cls.new("there")

    @classmethod
    def new(cls, name, *options):
        server.sql(cls.cluster.url(), "CREATE DATABASE " + name)
        return server.Server(*options, database_url=cls.cluster.url(name))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.other.stop()
        cls.cluster.stop()

    def ask(self, method, to=None, **request):
        return (to or self.server).connect(agent.TASKS + method, request)

    def move(self, task, to=None):
        """The id that it has there."""
        exported = self.ask("ExportTask", taskId=task)["archive"]
        return self.ask("ImportTask", to or self.other, archive=exported)["taskId"]

    def traced(self, service):
        """A task with two requests, one on two threads, and snapshots of a segment that never came: (task, its segments)."""
        task = tasks.create(self.server, "TRACE", service=service, endpoint="/buy", minDurationMs=0, dumpPeriodMs=10, maxSamples=5)
        program = Instance(self.server, service, service + "-1")
        start, trace = server.now_ms() - 5000, "trace-" + task
        ids = [name + task for name in ("main-", "thread-", "late-", "lost-")]
        for i, segment in enumerate(ids):
            frames = [["main", "run", "f%d" % (k // 2)] for k in range(4 + i)]
            program.send_snapshots(*(snapshot(task, segment, k, start + 1000 * i + 10 * k, f) for k, f in enumerate(frames)))
        program.send_segments(
            program.segment(trace, ids[0], [
                span(0, "/buy", start, start + 300, error=True, logs=[(start + 7, {"event": "error"})]),
                span(1, "SELECT", start + 5, start + 20, 0, peer="db:5432", tags={"db.type": "sql"}),
            ]),
            program.segment(trace, ids[1], [
                span(0, "thread", start + 10, start + 200, kind=LOCAL, refs=[reference(trace, ids[0], 0, True)]),
            ]),
            program.segment(trace + "b", ids[2], [span(0, "/buy", start + 2000, start + 2300)]),
        )
        return task, ids

    def found(self, task, ids, at):
        """All that there is to see of a trace task."""
        analyses = [self.ask("AnalyzeSegments", at, queries=[{"segmentId": i}]) for i in ids]
        analyses.append(self.ask("AnalyzeSegments", at, queries=[{"segmentId": i} for i in ids[:2]]))
        return self.ask("ListSegments", at, taskId=task), analyses

    def test_an_imported_trace_task_has_equal_answers(self):
        task, ids = self.traced("traced")
        listed, analyses = self.found(task, ids, self.server)
        self.assertEqual([len(r["spans"]) for r in listed["segments"]], [1, 3])
        self.assertIn("1 of 4 profiled segments are not there", listed["tip"])
        self.assertTrue(all(a.get("trees") for a in analyses))
        imported = self.move(task)
        self.assertEqual(self.found(imported, ids, self.other), (listed, analyses))
        # What it has is no request of the service there, and it has no instance.
        self.assertEqual(self.other.sql("SELECT count(*) FROM hearth_data.span_group"), [["0"]])
        self.assertEqual(self.other.sql("SELECT count(*) FROM hearth_data.instance"), [["0"]])
        # Once more from there, and beside the first.
        exported = self.ask("ExportTask", self.other, taskId=imported)["archive"]
        again = self.ask("ImportTask", self.server, archive=exported)["taskId"]
        self.assertEqual(self.found(again, ids, self.server), (listed, analyses))
        self.assertEqual(self.found(task, ids, self.server), (listed, analyses))
        view = self.ask("GetTask", self.other, taskId=imported)["task"]
        self.assertEqual((view["origin"], view["endpoint"]), ("TASK_ORIGIN_IMPORTED", "/buy"))
        self.assertNotEqual(view["state"], "TASK_STATE_NOTHING_SAMPLED")

    def test_an_import_stays_until_its_task_is_deleted(self):
        task, ids = self.traced("kept")
        at = self.new("elsewhere", "--retain-tasks", "1h", "--retain-spans", "1h")
        listed, _ = self.found(task, ids, self.server)
        kept, gone = self.move(task, at), self.move(task, at)
        at.sql("UPDATE hearth_data.task_segment SET received_at = received_at - 7200000")
        at.sql("UPDATE hearth_data.task_snapshot SET received_at = received_at - 7200000")
        at.sql("UPDATE hearth_data.task SET start_at = start_at - 7200000, created_at = created_at - 7200000,"
               " updated_at = updated_at - 7200000 WHERE task_id = '%s'" % gone)
        at.terminate()
        at.start()
        left = lambda table: at.sql("SELECT DISTINCT task_id FROM hearth_data." + table)
        server.eventually(lambda: left("task_segment") == left("task_snapshot") == [[kept]], what="what is left of one task")
        self.assertEqual(self.ask("ListSegments", at, taskId=kept), listed)
        at.stop()

    def test_rules_and_causes_are_exported_with_a_task(self):
        Rover(self.server).report(Process("network", "pod-1", "app"))
        rules = [{"minDurationMs": 100, "when4xx": True, "requireCompleteRequest": True, "maxRequestBytes": 1024},
                 {"uriRegex": "/x.*", "when5xx": True, "requireCompleteResponse": True}]
        network = tasks.create(self.server, "NETWORK", service="network", instance="pod-1", samplingRules=rules)
        triggered = report_task(
            self.server, "network", "pod-1", "app",
            [cause("HTTP_AVG_RESPONSE_TIME", 500, 812.345, '/"buy\\', False)], "NETWORK", uris=["/buy"],
        )
        for task in (network, triggered):
            before = self.ask("GetTask", taskId=task)["task"]
            after = self.ask("GetTask", self.other, taskId=self.move(task))["task"]
            for field in ("samplingRules", "causes"):
                self.assertEqual(after.get(field), before.get(field))
        self.assertEqual(before["causes"][0]["uriPath"], '/"buy\\')

    def test_metrics_that_no_server_exports_are_refused(self):
        spans = b"\0"
        segment = lambda **f: b"\7" + b"".join(map(text, ("shop", "pod", "/buy", f.get("trace", "t"), f.get("id", "s")))) \
            + b"".join(map(number, (1000, f.get("end", 2000), f.get("kind", 1), f.get("flags", 0)))) + text(f.get("spans", spans))
        before = self.other.sql("SELECT count(*) FROM hearth_data.task")
        bad = {
            "spans": segment(),
            "bytes": segment(spans=b"\xff" * 40),
            "id": segment(id=""),
            "UTF-8": segment(trace=b"\xff"),
            "end": segment(end=500),
            "kind": segment(kind=9),
            "flags": segment(flags=8),
            "snapshots": b"\x08" + text("s") + text(b"\xff\xff"),
            "none": b"\x08" + text("s") + text(b"\0\0"),
            "nobody's": b"\x08" + text("") + text(b"\0\0"),
        }
        cases = [(name, archive(records=records)) for name, records in bad.items()]
        cases += [("of another kind", archive(kind=1, records=segment()))]
        cases += [
            (value, archive(**{field: value}))
            for field in ("sampling", "causes")
            for value in ("{}", "null", "[", "[1]", '[],"a":[]', '[{"a":"\\u0000"}]', '[{"a":"\\ud800"}]', '[]]', '["]', "x")
        ]
        for name, content in cases:
            with self.subTest(name), self.assertRaises(server.RpcError) as caught:
                self.ask("ImportTask", self.other, archive=base64.b64encode(frame(content)).decode())
            self.assertEqual(caught.exception.code, "invalid_argument", caught.exception.message)
        self.assertEqual(self.other.sql("SELECT count(*) FROM hearth_data.task"), before)
        # The same writer, and nothing wrong.
        good = archive(sampling='[{"URIRegex": "/a\\u00e9[]"}]', causes="[]")
        imported = self.ask("ImportTask", self.other, archive=base64.b64encode(frame(good)).decode())["taskId"]
        shown = self.ask("GetTask", self.other, taskId=imported)["task"]["samplingRules"]
        self.assertEqual(shown, [{"uriRegex": "/a\u00e9[]"}])


if __name__ == "__main__":
    unittest.main()
