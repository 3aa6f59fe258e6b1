"""POST /ingest: what agents send, in every format that is read, and how each mistake is answered."""

import gzip
import json
import pathlib
import re
import shlex
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

import wire
from pprof import Profile
from server import PROFILES, PUSH, Server, now_ms

T = now_ms() - 300_000
ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/files"
START, END = T - 3_600_000, T + 3_600_000
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
GO_CPU = [("samples", "count"), ("cpu", "nanoseconds")]
TLAB = ["alloc_in_new_tlab_objects", "alloc_in_new_tlab_bytes", "alloc_outside_tlab_objects", "alloc_outside_tlab_bytes"]

# The end of the name of a text upload, the type that it names, and what a value of 3 becomes at 50 Hz.
SUFFIXES = [
    ("cpu", CPU, 60_000_000), ("itimer", CPU, 60_000_000), ("wall", "wall:wall:nanoseconds:cpu:nanoseconds", 60_000_000),
    ("inuse_objects", "memory:inuse_objects:count::", 3), ("alloc_objects", "memory:alloc_objects:count::", 3),
    ("inuse_space", "memory:inuse_space:bytes::", 3), ("alloc_space", "memory:alloc_space:bytes::", 3),
    ("goroutines", "goroutine:goroutines:count::", 3),
    ("mutex_count", "mutex:contentions:count::", 3), ("mutex_duration", "mutex:delay:nanoseconds::", 3),
    ("block_count", "block:contentions:count::", 3), ("block_duration", "block:delay:nanoseconds::", 3),
    ("lock_count", "block:contentions:count::", 3), ("lock_duration", "block:delay:nanoseconds::", 3),
    ("live", "memory:live:count::", 3), ("exceptions", "exceptions:samples:count::", 3),
    ("bytes", "memory:samples:bytes::", 3),
    ("seconds", "wall:wall:nanoseconds:cpu:nanoseconds", 3_000_000_000),
    ("milliseconds", "wall:wall:nanoseconds:cpu:nanoseconds", 3_000_000),
    ("microseconds", "wall:wall:nanoseconds:cpu:nanoseconds", 3_000),
    ("nanoseconds", "wall:wall:nanoseconds:cpu:nanoseconds", 3),
] + [(name, "memory:%s:%s::" % (name, "count" if "objects" in name else "bytes"), 3) for name in TLAB]

# What pyroscope-go sends: sample types of the profile, its sample_type_config, and the types that come of it.
GO = [
    (GO_CPU, ("cpu", "nanoseconds"), None, ["process_cpu:samples:count:cpu:nanoseconds", CPU]),
    (
        [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")],
        ("space", "bytes"),
        {
            "alloc_objects": {"units": "objects", "cumulative": False}, "alloc_space": {"units": "bytes", "cumulative": False},
            "inuse_objects": {"units": "objects", "aggregation": "average"},
            "inuse_space": {"units": "bytes", "aggregation": "average"},
        },
        ["memory:%s:space:bytes" % t for t in
         ("alloc_objects:count", "alloc_space:bytes", "inuse_objects:count", "inuse_space:bytes")],
    ),
    (
        [("goroutine", "count")], ("goroutine", "count"),
        {"goroutine": {"display-name": "goroutines", "units": "goroutines", "aggregation": "average"}},
        ["goroutines:goroutine:count:goroutine:count"],
    ),
    (
        [("contentions", "count"), ("delay", "nanoseconds")], ("contentions", "count"),
        {"contentions": {"display-name": "mutex_count", "units": "lock_samples", "cumulative": False},
         "delay": {"display-name": "mutex_duration", "units": "lock_nanoseconds", "cumulative": False}},
        ["mutex:contentions:count:contentions:count", "mutex:delay:nanoseconds:contentions:count"],
    ),
    (
        [("contentions", "count"), ("delay", "nanoseconds")], ("contentions", "count"),
        {"contentions": {"display-name": "block_count", "units": "lock_samples", "cumulative": False},
         "delay": {"display-name": "block_duration", "units": "lock_nanoseconds", "cumulative": False}},
        ["block:contentions:count:contentions:count", "block:delay:nanoseconds:contentions:count"],
    ),
]


def form(files, boundary="a-boundary-of-the-test"):
    """multipart/form-data of [(field, filename or None, bytes)]: (headers, body)."""
    body = b""
    for field, filename, data in files:
        head = 'Content-Disposition: form-data; name="%s"' % field
        if filename is not None:
            head += '; filename="%s"\r\nContent-Type: application/octet-stream' % filename
        body += b"--%s\r\n%s\r\n\r\n%s\r\n" % (boundary.encode(), head.encode(), data)
    body += b"--%s--\r\n" % boundary.encode()
    return {"Content-Type": 'multipart/form-data; boundary="%s"' % boundary}, body


def go_form(profile, config=None):
    files = [("profile", "profile.pprof", profile)]
    if config is not None:
        files.append(("sample_type_config", "sample_type_config.json", json.dumps(config).encode()))
    return form(files)


def node(text, value, children):
    """A node of the binary trees: text, value, children."""
    data = text.encode()
    return wire.varint(len(data)) + data + wire.varint(value) + wire.varint(len(children)) + b"".join(children)


class Ingest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = self.id().rsplit(".", 1)[1]

    def post(self, body, headers=None, path="/ingest", method="POST", **arguments):
        arguments = {"name": self.service, "from": T // 1000, **arguments}
        query = urllib.parse.urlencode({k: v for k, v in arguments.items() if v is not None})
        return self.server.http(method, path + "?" + query, body, headers)

    def upload(self, body, headers=None, **arguments):
        """The hearth-dropped counts of an upload that is stored."""
        status, found, answer = self.post(body, headers, **arguments)
        self.assertEqual((status, answer), (200, b""), answer)
        text = found.get("hearth-dropped", "")
        return {k: int(v) for k, v in (part.split("=") for part in text.split(", "))} if text else {}

    def refused(self, status, code, part, body, headers=None, **arguments):
        found, head, answer = self.post(body, headers, **arguments)
        self.assertEqual(found, status, answer)
        self.assertEqual(head["content-type"], "application/json")
        error = json.loads(answer)
        self.assertEqual(error["code"], code)
        self.assertIn(part, error["message"])
        return error["message"]

    def selector(self, service=None, more=""):
        return '{service_name="%s"%s}' % (service or self.service, more)

    def graph(self, profile_type=CPU, service=None, more="", start=START, end=END):
        return self.server.flamegraph(profile_type, self.selector(service, more), start, end)

    def total(self, *arguments, **options):
        return self.graph(*arguments, **options).total

    def types(self, service=None):
        """Types of one service, through its series."""
        found = self.server.series(START, END, [self.selector(service)], ["__profile_type__"])
        return sorted(value for labels in found for _, value in labels)

    def labels(self, service=None):
        found = self.server.series(START, END, [self.selector(service)])
        return [dict(labels) for labels in found]

    # ---- pprof ----

    def test_a_form_as_the_go_sdk_sends_it_gives_the_types_of_its_config(self):
        for i, (types, period, config, expected) in enumerate(GO):
            with self.subTest(expected[0]):
                app = "%s.%d" % (self.service, i)
                profile = Profile(types, period_type=period, time_ns=T * 1_000_000)
                profile.add(["main", "work"], [5 + k for k in range(len(types))])
                headers, body = go_form(profile.encode(), config)
                dropped = self.upload(
                    body, headers, name=app + "{region=eu}", spyName="gospy", sampleRate=100, units="samples",
                    aggregationType="sum", until=T * 1_000_000, **{"from": (T - 10_000) * 1_000_000},
                )
                self.assertEqual(dropped, {})
                self.assertEqual(self.types(app), sorted(expected))
                for k, profile_type in enumerate(expected):
                    functions = self.graph(profile_type, app).functions()
                    self.assertEqual(functions, {"main": (0, 5 + k), "work": (5 + k, 5 + k)})
                self.assertEqual(self.labels(app)[0]["pyroscope_spy"], "gospy")
                self.assertEqual(self.labels(app)[0]["region"], "eu")

    def test_a_form_of_the_node_sdk_is_wall(self):
        profile = Profile([("sample", "count"), ("wall", "nanoseconds")], ("wall", "nanoseconds"), time_ns=T * 1_000_000)
        headers, body = form([("profile", "profile", profile.add(["(root)", "f"], [1, 10_000_000]).encode())])
        self.upload(body, headers, spyName="nodespy")
        self.assertEqual(
            self.types(), ["wall:sample:count:wall:nanoseconds", "wall:wall:nanoseconds:wall:nanoseconds"]
        )
        self.assertEqual(self.total("wall:wall:nanoseconds:wall:nanoseconds"), 10_000_000)

    def test_bytes_without_a_format_are_recognised(self):
        profile = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7])
        self.upload(profile.encode())
        self.upload(profile.encode(compress=False))
        self.upload(gzip.compress(profile.encode()))
        self.assertEqual(self.total(), 21, "pprof: gzip, plain, gzip twice")
        app = self.service + "_text"
        self.upload(b"main;f 2\n", name=app)
        self.upload(gzip.compress(b"main;f 3\n"), name=app)
        self.upload("main;f 4\r\n".encode("utf-16"), name=app)
        self.upload(b"{main};f 1\n", name=app)
        self.assertEqual(self.total(service=app), 10 * 10_000_000)
        self.refused(422, "unknown", "the JFR chunk at byte 0", b"FLR\0\0\2\0\0" + bytes(100))
        for body in (b'{"a": 1}', b"\x7fELF" + bytes(200)):
            self.refused(422, "unknown", "supported are JFR, ", body)

    def test_pprof_by_name_is_a_raw_body_or_a_form(self):
        profile = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7])
        self.upload(profile.encode(), format="pprof")
        self.upload(profile.encode(), {"Content-Encoding": "gzip"}, format="pprof")
        headers, body = go_form(profile.encode())
        self.upload(body, headers, format="pprof")
        self.upload(gzip.compress(body), {**headers, "Content-Encoding": "gzip"})
        self.assertEqual(self.total(), 28)

    def test_other_files_of_profilers_are_recognised_by_their_bytes(self):
        heap = b"heap profile:      1:       29 [     3:       99] @ heapprofile\n     1:   29 [  3:   99] @ 0x12 0x34\n"
        cpu = {"nodes": [{"id": 1, "callFrame": {"functionName": "f"}, "hitCount": 2}], "startTime": 0, "endTime": 9000,
               "samples": [1, 1], "timeDeltas": [4000, 5000]}
        for name, body, total in (("heap", heap, 29), ("cpuprofile", json.dumps(cpu).encode(), 5_000_000)):
            for compress in (bytes, gzip.compress):
                service = "%s-%s-%s" % (self.service, name, compress.__name__)
                self.upload(compress(body), name=service + "{region=eu}")
                self.assertIn(total, [self.total(t, service) for t in self.types(service)], self.types(service))
                self.assertEqual({labels["region"] for labels in self.labels(service)}, {"eu"})

    def test_files_of_speedscope_have_their_own_types(self):
        """As py-spy and pyinstrument write them; by name or by their bytes, compressed or not."""
        for name in ("busy", "events"):
            packed = (GOLDEN / ("%s.speedscope.json.gz" % name)).read_bytes()
            stacks = [line for line in (GOLDEN / ("%s.speedscope.txt" % name)).read_text().splitlines() if ":" in line]
            total = sum(int(re.search(r" (\d+) ?(\{.*)?$", line).group(1)) for line in stacks)
            ways = (packed, {"format": "speedscope"}), (gzip.decompress(packed), {"format": "speedscope"}), (packed, {})
            for i, (body, arguments) in enumerate(ways):
                service = "%s-%s%d" % (self.service, name, i)
                self.upload(body, name=service + "{region=eu}", sampleRate=50, units="samples", until=T // 1000 + 2, **arguments)
                (found,) = self.types(service)
                self.assertTrue(found.startswith("wall:wall:nanoseconds:"), found)
                self.assertEqual(self.total(found, service, start=T - 1000, end=T + 1000), total)
                self.assertEqual({labels["region"] for labels in self.labels(service)}, {"eu"})
        self.refused(422, "unknown", "IngestInput-speedscope", gzip.decompress(packed)[:500], format="speedscope")

    def test_the_three_paths_accept_equal_uploads(self):
        for path in ("/ingest", "/pyroscope/ingest", "/api/v1/profile/ingest"):
            self.upload(b"main 1\n", path=path)
            for method in ("GET", "PUT", "DELETE", "PATCH"):
                status, headers, _ = self.post(None, path=path, method=method)
                self.assertEqual((status, headers["allow"]), (405, "POST"))
        self.assertEqual(self.total(), 3 * 10_000_000)

    def test_push_is_answered_below_the_base_address_of_deepflow_too(self):
        raw = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7]).encode()
        labels = [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, self.service)])]
        request = wire.encode([(1, labels + [(2, [(1, raw)])])])
        path = "api/v1/profile/push.v1.PusherService/Push"
        self.assertEqual(self.server.connect_proto(path, request)[0], b"")
        self.assertEqual(self.total(), 7)
        for other in ("api/v1/profile/querier.v1.QuerierService/ProfileTypes", "api/v1/profile/push.v1.PusherService/Pull", "api/v1/push.v1.PusherService/Push"):
            self.assertEqual(self.server.http("POST", "/" + other, b"", {"Content-Type": "application/proto"})[0], 404)

    def test_the_time_of_a_pprof_is_its_own_unless_it_has_none(self):
        for time_ns, at in ((T * 1_000_000, T), (0, T - 60_000), (T // 1000, T - 60_000)):
            with self.subTest(time_ns):
                app = "%s_%d" % (self.service, time_ns)
                profile = Profile(GO_CPU, time_ns=time_ns).add(["main"], [1, 7])
                self.upload(profile.encode(), name=app, **{"from": T - 60_000})
                self.assertEqual(self.total(service=app, start=at, end=at), 7)
                self.assertEqual(self.total(service=app, start=at + 1), 0)

    def test_function_names_of_scripting_agents_have_their_file_in_front(self):
        profile = Profile(GO_CPU, time_ns=T * 1_000_000)
        profile.samples.append(([(("work", "app.py", 3),), (("main", "/usr/lib/x.py", 1),), (("bare", "", 1),)], [1, 4], {}))
        expected = {
            "pyspy": {"app.py work", "main", "bare"}, "rbspy": {"app.py work", "/usr/lib/x.py main", "bare"},
            "scripting": {"app.py work", "/usr/lib/x.py main", "bare"}, "gospy": {"work", "main", "bare"},
        }
        for spy, names in expected.items():
            self.upload(profile.encode(), name=self.service + spy, spyName=spy)
            self.assertEqual(set(self.graph(service=self.service + spy).functions()), names)

    def test_profiles_of_the_old_dotnet_agent_are_mended(self):
        types = [("cpu", "nanoseconds"), ("alloc-samples", "count")]
        sample = [(2, [(1, 1), (2, 8), (2, 9)])]
        body = sample + [(1, [(1, 1), (2, 2)]), (1, [(1, 3), (2, 4)]), (4, [(1, 1), (4, [(1, 1)])]), (5, [(2, 5)])]
        text = ["", types[0][0], types[0][1], types[1][0], types[1][1], "Main"]
        data = wire.encode(body + [(6, t) for t in text] + [(9, T * 1_000_000)])
        headers, body = go_form(data)
        self.refused(422, "unknown", "function id is 0", body, headers, spyName="gospy")
        self.upload(body, headers, spyName="dotnetspy")
        self.assertEqual(self.types(), ["process_cpu:alloc_samples:count::", "process_cpu:cpu:nanoseconds::"])
        self.assertEqual(self.graph("process_cpu:cpu:nanoseconds::").functions(), {"Main": (8, 8)})

    # ---- text ----

    def test_the_end_of_the_name_sets_the_type_of_a_text(self):
        for suffix, profile_type, value in SUFFIXES:
            with self.subTest(suffix):
                service = "%s-%s" % (self.service, suffix)
                self.upload(b"a;b 2\na;c 1\n", name="%s.%s{x=y}" % (service, suffix), sampleRate=50)
                self.assertEqual(self.types(service), [profile_type])
                functions = self.graph(profile_type, service).functions()
                self.assertEqual(functions, {"a": (0, value), "b": (value // 3 * 2, value // 3 * 2), "c": (value // 3,) * 2})
        self.refused(400, "invalid_argument", "unknown profile type", b"a 1\n", name="my.python.app")

    def test_the_sample_rate_is_100_if_it_is_absent_and_refused_if_it_is_no_number(self):
        for rate, value in ((None, 10_000_000), ("", 10_000_000), ("1000", 1_000_000)):
            app = "%s_%s" % (self.service, rate)
            self.upload(b"a 1\n", name=app, sampleRate=rate, format="folded")
            self.assertEqual(self.total(service=app), value, rate)
        for rate in ("-1", "often", "99.5", "9" * 30):
            self.refused(400, "invalid_argument", 'sampleRate "%s" is no number' % rate, b"a 1\n", sampleRate=rate)
        profile = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7])
        self.upload(profile.encode(), sampleRate="often")
        self.assertEqual(self.total(), 7, "a pprof has its own")

    def test_unit_and_aggregation_name_the_type_of_a_text_without_an_ending(self):
        cases = [
            ({"units": "samples"}, CPU, 3 * 20_000_000), ({"units": "nanoseconds"}, CPU, 3), ({"units": "microseconds"}, CPU, 3000),
            ({"unit": "bytes"}, "memory:alloc_space:bytes::", 3), ({"units": "objects", "aggregationType": "sum"}, "memory:alloc_objects:count::", 3),
            ({"units": "objects", "aggregationType": "average"}, "memory:inuse_objects:count::", 3),
            ({"units": "bytes", "unit": "bytes", "aggregrationType": "average"}, "memory:inuse_space:bytes::", 3),
            ({"units": "goroutines", "aggregationType": "average"}, "goroutine:goroutines:count::", 3),
            ({"units": "lock_samples"}, "mutex:contentions:count::", 3), ({"units": "lock_nanoseconds"}, "mutex:delay:nanoseconds::", 3),
            ({"units": "", "aggregationType": ""}, CPU, 3 * 20_000_000),
        ]
        for i, (arguments, profile_type, value) in enumerate(cases):
            with self.subTest(arguments):
                service = "%s-%d" % (self.service, i) if not arguments.get("units") else "%s.%d" % (self.service, i)
                self.upload(b"a;b 3\n", name=service, sampleRate=50, **arguments)
                self.assertEqual(self.types(service), [profile_type])
                self.assertEqual(self.total(profile_type, service), value)

    def test_units_and_aggregations_that_are_unknown_or_contradict_are_refused_by_name(self):
        profile = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7]).encode()
        bad = lambda part, body=b"a 1\n", **arguments: self.refused(400, "invalid_argument", part, body, **arguments)
        for body in (b"a 1\n", profile):
            bad('units "parsecs" is unknown; it may be samples, count,', body, units="parsecs")
            bad('units "parsecs" is unknown', body, unit="parsecs")
            bad('aggregationType "median" is unknown; it may be sum or average', body, aggregationType="median")
            bad('aggregationType "median" is unknown', body, aggregrationType="median")
            bad("units and unit have different values", body, units="bytes", unit="objects")
            bad("aggregationType and aggregrationType have different values", body, aggregationType="sum", aggregrationType="average")
        bad('units "bytes" contradicts the application name (.cpu)', name="a.cpu", units="bytes")
        bad("(.alloc_space), whose values have the aggregation sum", name="a.alloc_space", aggregationType="average")
        bad('contradicts units "samples"', units="samples", aggregationType="average")
        self.upload(profile, units="goroutines", aggregationType="average")
        self.assertEqual(self.types(), [CPU, CPU.replace("cpu:nanoseconds", "samples:count", 1)], "a pprof has its own")

    def test_samples_at_a_rate_of_0_are_counts(self):
        for suffix, profile_type in (("", "process_cpu:samples:count::"), (".cpu", "process_cpu:samples:count::"),
                                     (".itimer", "process_cpu:samples:count::"), (".wall", "wall:samples:count::")):
            service = self.service + (suffix or ".none").replace(".", "-")
            self.upload(b"a 3\n", name=service + suffix, sampleRate=0, format="folded")
            self.assertEqual(self.types(service), [profile_type])
            self.assertEqual(self.total(profile_type, service), 3)

    def test_lines_tries_and_trees_are_read(self):
        self.upload(b"a;b\na;c\na;b\n", format="lines")
        functions = {"a": (0, 30_000_000), "b": (20_000_000,) * 2, "c": (10_000_000,) * 2}
        self.assertEqual(self.graph().functions(), functions)
        trie = node("", 0, [node("a;", 0, [node("b", 2, []), node("c", 1, [])])])
        tree = node("", 0, [node("a", 0, [node("b", 2, []), node("c", 1, [])])])
        for kind, data in (("trie", trie), ("tree", tree)):
            self.upload(data, name=self.service + kind, format=kind)
            self.upload(data, {"Content-Type": "binary/octet-stream+" + kind}, name=self.service + kind)
            doubled = {name: (own * 2, total * 2) for name, (own, total) in functions.items()}
            self.assertEqual(self.graph(service=self.service + kind).functions(), doubled)
            self.refused(422, "unknown", "tree of stacks", data[:-2], format=kind)

    def test_dropped_and_cut_parts_are_reported(self):
        text = b"a;b 1\n" + b";".join(b"f%d" % i for i in range(1500)) + b" 2\na 0\n"
        self.assertEqual(
            self.upload(text, name=self.service + "{__secret__=1,empty=}"),
            {"cut_stacks": 1, "cut_frames": 500, "zero_samples": 1, "reserved_labels": 1, "empty_labels": 1},
        )
        self.assertEqual(self.total(), 3 * 10_000_000)

    def test_the_curl_of_the_readme_shows_why_an_old_file_is_refused(self):
        line = next(line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("curl --fail-with-body"))
        old = Profile(GO_CPU, time_ns=(T - 30 * 24 * 3_600_000) * 1_000_000).add(["main"], [1, 10_000_000])
        with tempfile.NamedTemporaryFile(suffix=".pb.gz") as file:
            file.write(gzip.compress(old.encode()))
            file.flush()
            line = line.replace("http://127.0.0.1:4040", "http://127.0.0.1:%d" % self.server.port).replace("@cpu.pb.gz", "@" + file.name)
            done = subprocess.run(["curl", "-sS", *shlex.split(line)[1:]], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 22, done.stderr)
        self.assertRegex(json.loads(done.stdout)["message"], r"ingestion window.*reject-older-than")

    def test_a_text_with_a_line_that_no_rule_explains_is_refused_with_its_number(self):
        stacks = b"# a comment\n\n" + b"a;b 1\n" * 50
        for kind in (None, "folded", "groups", "collapsed"):
            self.refused(422, "unknown", 'line 53 is not of the form "frame;frame value": "a;b"', stacks + b"a;b\n", format=kind)
        self.refused(422, "unknown", 'line 54 is not of the form "frame;frame": ";;"', stacks + b"a\n;;\n", format="lines")
        self.assertEqual(self.types(), [])

    def test_output_of_perf_script_is_read_as_such_or_refused(self):
        """Whatever its fields are, ids and years never become values of collapsed stacks."""
        header = b"# ========\n# captured on    : Wed Nov 25 20:43:55 2026\n# cmdline : python3 -c\nf;g 2026\n# ========\n#\n"
        graph = b"app 77 %s\n\t 1f f+0x1 (/bin/app)\n\t 2f main+0x1 (/bin/app)\n\n"
        for i, fields in enumerate((b"5.25:   5000000 cpu-clock: ", b"[001] 5.25: cycles:u: ", b"U 5.25: ", b"cycles: ")):
            service = "%s%d" % (self.service, i)
            self.upload(header + graph % fields * 3, name=service, sampleRate=97)
            self.assertEqual(self.graph("process_cpu:samples:count:" + ("cpu:nanoseconds" if i == 0 else ":"), service).functions(),
                             {"app": (0, 3), "main": (0, 3), "f": (3, 3)}, fields)
        for fields in (b"", b"5.25: 2026", b"x y 2026"):
            self.refused(422, "unknown", "line 2 is not of the form", graph % fields * 3)
        self.refused(422, "unknown", "line 1 is a record of perf script", graph % b"5.25: 1 cycles: ", format="lines")
        self.refused(422, "unknown", "no record of perf script's output", header)
        self.refused(422, "unknown", "no record of perf script's output", header[:90])
        self.assertEqual(self.types(), [])

    def test_every_form_of_a_time_is_read(self):
        forms = [
            ("s", T // 1000, T // 1000 * 1000), ("ms", T, T), ("us", T * 1000 + 7, T), ("ns", T * 1_000_000 + 7, T),
            ("now", "now", None), ("minutes", "now-5m", -300_000), ("min", "now-5min", -300_000), ("absent", None, None),
            ("nonsense", "yesterday", None),
        ]
        for name, text, at in forms:
            with self.subTest(name):
                app = self.service + name
                before = now_ms()
                status, headers, _ = self.post(b"a 1\n", name=app, **{"from": text})
                after = now_ms()
                self.assertEqual(status, 200)
                self.assertEqual("hearth-note" in headers, name == "nonsense")
                start, end = (at, at + 1) if at is not None and at > 0 else (before + (at or 0), after + (at or 0))
                self.assertEqual(self.total(service=app, start=start, end=end), 10_000_000)
        midnight = now_ms() // 86_400_000 * 86_400_000
        self.upload(b"a 1\n", **{"from": time.strftime("%Y%m%d", time.gmtime(midnight // 1000))})
        self.assertEqual(self.total(start=midnight, end=midnight), 10_000_000)

    def test_the_duration_of_a_text_is_that_of_its_range(self):
        self.upload(b"a 1\n", until=T // 1000 + 15)
        found = self.server.sql(
            "SELECT duration_ns FROM %s JOIN hearth_data.service USING (service_id) WHERE name = '%s'"
            % (PROFILES, self.service)
        )
        self.assertEqual(found, [["15000000000"]])

    # ---- names ----

    def test_label_values_are_plain_or_in_quotes(self):
        name = self.service + ' { region = "eu" , zone=b-1, pod="" , region="us", dotted.key=x=y, } ignored'
        self.upload(b"a 1\n", name=name)
        labels = self.labels()[0]
        self.assertEqual((labels["region"], labels["zone"]), ("us", "b-1"))
        self.assertNotIn("pod", labels)
        found = self.server.label_values("dotted.key", START, END, [self.selector()])
        self.assertEqual(found, ["x=y"])
        self.assertEqual(labels["pyroscope_spy"], "unknown")

    def test_a_service_name_of_the_client_wins(self):
        profile = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7]).encode()
        self.upload(profile, name="app.cpu{service_name=%s}" % self.service)
        self.assertEqual(self.labels()[0]["app_name"], "app.cpu")
        text = self.service + "_text"
        self.upload(b"a 1\n", name="app.cpu{service_name=%s}" % text)
        self.assertEqual(self.labels(text)[0]["app_name"], "app")
        self.upload(profile, name=self.service + ".cpu")
        self.assertEqual(self.total(service=self.service + ".cpu"), 7, "the name of a pprof is kept as it is")

    def test_labels_of_the_name_name_the_service_in_the_order_that_a_push_has(self):
        profile = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7]).encode()
        names = ["SERVICE", "service", "SERVICE_NAME", "serviceName", "service_name"]
        for i, name in enumerate(names):
            sent = {n: "%s_%s" % (self.service, n) for n in names[: i + 1]}
            for body, app in ((profile, "app"), (b"a 1\n", "text.cpu")):
                self.upload(body, name="%s{%s,app_name=}" % (app, ",".join("%s=%s" % pair for pair in sent.items())))
            found = self.labels(sent[name])
            self.assertEqual({labels["app_name"] for labels in found}, {"app", "text"})
            for labels in found:
                self.assertEqual({n: labels[n] for n in names if n in labels}, {**sent, "service_name": sent[name]})
        self.upload(profile, name=self.service + "{service_name=,service=}")
        self.assertEqual(self.total(), 7)

    def test_a_label_can_rename_the_service_of_a_client_that_always_names_one(self):
        """In every format; the application's name is kept as app_name."""
        server = Server("--service-labels", "service,service_name")
        pprof = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7]).encode()
        speedscope = gzip.decompress((GOLDEN / "busy.speedscope.json.gz").read_bytes())
        jfr = gzip.decompress((GOLDEN.parent / "jfr/work.jfr.gz").read_bytes())
        tree = node("", 0, [node("a", 1, [])])
        bodies = {"pprof": pprof, "lines": b"a;b\n", "folded": b"a;b 1\n", "tree": tree, "trie": tree, "speedscope": speedscope, "jfr": jfr}
        for kind, body in bodies.items():
            for labels, service in ((",service=renamed-" + kind, "renamed-" + kind), ("", "sent-" + kind)):
                name = "app-%s{service_name=sent-%s%s}" % (kind, kind, labels)
                query = urllib.parse.urlencode({"name": name, "from": T // 1000, "format": kind})
                status, _, answer = server.http("POST", "/ingest?" + query, body)
                self.assertEqual(status, 200, answer)
                found = server.series(START, END, ['{service_name="%s"}' % service])
                self.assertEqual({dict(series).get("app_name") for series in found}, {"app-" + kind}, service)
        server.stop()

    def test_names_that_pyroscope_takes_are_taken(self):
        for i, (rest, pod, dropped) in enumerate((
            ("{", None, {}), ("{pod=b", "b", {}), ("{,}", None, {}), ("{pod=b,,}", "b", {}),
            ("{a}", None, {"empty_labels": 1}), ("{a,pod=b}", "b", {"empty_labels": 1}),
            ("{__name__=x,pod=b}", "b", {"reserved_labels": 1}),
        )):
            service = "%s%d" % (self.service, i)
            self.assertEqual(self.upload(b"a 1\n", name=service + rest), dropped, rest)
            (labels,) = self.labels(service)
            self.assertEqual((labels.get("pod"), labels["__name__"], "a" in labels), (pod, "process_cpu", False), rest)

    def test_names_that_break_a_rule_are_400(self):
        for name in ("", "{a=b}", "b ad", "app{=b}", "app{a-b=c}"):
            self.refused(400, "invalid_argument", "bad name", b"a 1\n", name=name)
        self.refused(400, "invalid_argument", "bad name", b"a 1\n", name=None)
        status, _, _ = self.server.http("POST", "/ingest?name=a%zz", b"a 1\n")
        self.assertEqual(status, 400)

    # ---- what is refused, and what is acknowledged and not stored ----

    def test_the_same_bad_profile_is_400_on_push_and_422_here(self):
        profile = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7])
        old = Profile(GO_CPU, time_ns=(T - 30 * 86_400_000) * 1_000_000).add(["main"], [1, 7]).encode()
        long = self.service + "{k=%s}" % ("v" * 3000)
        headers, broken = go_form(profile.encode(compress=False)[:-7])
        cases = [
            (broken, {"headers": headers}, "IngestInput-pprof"), (old, {}, "outside of ingestion window"),
            (profile.encode(), {"name": long}, "label value too long"), (b"\0\1\2\3 no profile", {}, "IngestInput-pprof"),
        ]
        for body, options, part in cases:
            message = self.refused(422, "unknown", part, body, **options)
            self.assertTrue(message.startswith("pushing IngestInput-pprof failed"), message)
        with self.assertRaises(Exception) as caught:
            self.server.push(old, {"__name__": "process_cpu", "service_name": self.service})
        self.assertEqual(caught.exception.code, "invalid_argument")
        self.upload(profile.encode())
        self.assertEqual(self.total(), 7, "the good one among bad ones is there")

    def test_a_text_is_422_when_it_cannot_be_read_and_400_when_it_may_not_be_stored(self):
        self.refused(422, "unknown", "IngestInput-collapsed", b"no value in here\n", format="folded")
        self.refused(422, "unknown", "63 bits", b"a 9223372036854775807\n")
        self.refused(400, "invalid_argument", "label value too long", b"a 1\n", name=self.service + "{k=%s}" % ("v" * 3000))
        self.refused(400, "invalid_argument", "outside of ingestion window", b"a 1\n", **{"from": 1_000_000_000})

    def test_unusable_forms_are_refused(self):
        profile = Profile(GO_CPU, time_ns=T * 1_000_000).add(["main"], [1, 7]).encode()
        headers, body = go_form(profile)
        self.refused(422, "unknown", "is truncated", body[:-20], headers)
        self.refused(422, "unknown", "has no boundary", body, {"Content-Type": "multipart/form-data"})
        self.refused(422, "unknown", "unsupported client version", *reversed(form([("profile", "p", profile), ("prev_profile", "p", profile)])))
        config = [("profile", "p", profile), ("sample_type_config", "c", b'{"cpu":')]
        self.refused(422, "unknown", "sample_type_config", *reversed(form(config)))
        jfr = form([("jfr", "jfr", b"FLR\0"), ("labels", "labels", b"")])
        self.refused(422, "unknown", "not a JFR recording", *reversed(jfr), format="jfr")
        self.refused(422, "unknown", "not a JFR recording", *reversed(jfr))
        for kind in ("jfr", "speedscope"):
            self.refused(422, "unknown", "IngestInput-" + kind, b"{}", format=kind)

    def test_refused_uploads_are_counted_by_reason_and_client(self):
        """An operator sees which services are refused and why, and that nothing a client says makes new lines."""
        server = Server("--max-request-bytes", "100000")
        before = server.metrics()
        jfr, headers = form([("jfr", "jfr", b"FLR\0"), ("labels", "labels", b"")])[::-1]
        with_agent = lambda agent, **more: {"User-Agent": agent, **more}
        for path, body, head, status in (
            ("/ingest?name=a&spyName=javaspy&format=jfr", jfr, {**headers, **with_agent("okhttp/4.12.0")}, 422),
            ("/pyroscope/ingest?name=a&spyName=javaspy", jfr, headers, 422),
            ("/ingest?name=a", b'{"a": 1}', with_agent("Zyx/1{}"), 422),
            ("/ingest?name=", b"a 1\n", with_agent("Go-http-client/1.1"), 400),
            ("/ingest?name=a", b"x" * 200_000, with_agent("python-requests/2"), 413),
            ("/" + PUSH, b"\xff", with_agent("connect-go/1.19", **{"Content-Type": "application/proto"}), 400),
            ("/" + PUSH, b"\xff", with_agent("Alloy/v1.9", **{"Content-Type": "text/plain"}), 415),
        ):
            self.assertEqual(server.http("POST", path, body, head)[0], status, path)
        after = server.metrics()
        found = {
            (dict(labels)["reason"], dict(labels)["client"]): n - before.get((name, labels), 0)
            for (name, labels), n in after.items() if name == "hearth_rejected_profiles_total"
        }
        self.assertEqual({key: n for key, n in found.items() if n}, {
            ("invalid_argument", "java"): 2, ("unsupported_format", "other"): 1, ("invalid_argument", "go"): 2,
            ("resource_exhausted", "python"): 1, ("unsupported_media_type", "alloy"): 1,
        })
        server.stop()

    def test_uploads_without_a_profile_or_of_one_span_are_acknowledged_counted_and_not_stored(self):
        headers, empty = form([("profile", "profile.pprof", b"")])
        _, plain_field = form([("profile", None, b"a field, not a file")])
        self.assertEqual(self.upload(empty, headers), {"missing_profiles": 1})
        self.assertEqual(self.upload(plain_field, headers), {"missing_profiles": 1})
        self.assertEqual(self.upload(b"", format="pprof"), {"missing_profiles": 1})
        self.assertEqual(self.upload(b"a 1\n", name=self.service + "{profile_id=ab12}"), {"span_uploads": 1})
        text = self.server.http("GET", "/metrics")[2].decode()
        self.assertIn('hearth_discarded_total{reason="missing_profiles"} 3', text)
        self.assertIn('hearth_discarded_total{reason="span_uploads"} 1', text)
        self.assertIn("upload with a profile_id is not stored", self.server.log())
        self.assertEqual(self.types(), [])

    def test_a_body_above_the_limit_is_413(self):
        server = Server("--max-request-bytes", "100000")
        try:
            for body, headers in ((b"x" * 200_000, {}), (gzip.compress(b"a 1\n" * 100_000), {"Content-Encoding": "gzip"})):
                status, _, answer = server.http("POST", "/ingest?name=a", body, headers)
                self.assertEqual(status, 413, answer)
        finally:
            server.stop()

    # ---- acknowledged means committed ----

    def test_an_upload_is_answered_when_it_is_committed_and_not_before(self):
        count = (
            "SELECT count(*) FROM %s JOIN hearth_data.service USING (service_id) WHERE name = '%s'"
            % (PROFILES, self.service)
        )
        self.upload(b"a 1\n")
        self.assertEqual(self.server.sql(count), [["1"]])
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.post(b"a;b 2\n")[0])) for _ in range(4)]
        with self.server.paused_database():
            for thread in threads:
                thread.start()
            time.sleep(1)
            self.assertEqual(answers, [], "nothing is committed yet")
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [200] * 4)
        self.assertEqual(self.server.sql(count), [["5"]])
        self.assertEqual(self.total(), 9 * 10_000_000)


if __name__ == "__main__":
    unittest.main()
