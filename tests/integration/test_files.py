"""Files of real profilers, through every door that takes a file: the client, ad hoc profiles, and their comparison.

Oracles: the golden texts, whose sums are those of the profilers; go tool pprof, which reads the legacy formats itself.
"""

import base64
import gzip
import json
import os
import re
import subprocess
import unittest

import otlp_profiles
from server import ROOT, RpcError, Server, now_ms, temporary_directory
from test_cli import hearth
from test_shared_data import GO_PPROF, needs_go

GOLDEN = ROOT / "tests/golden/files"
ADHOC = "adhocprofiles.v1.AdHocProfileService/"

# Format, the types that an ad hoc profile offers, and a stored profile type for each of them.
FILES = {
    "busy.speedscope": ("speedscope", ["wall"], ["wall:wall:nanoseconds:cpu:nanoseconds"]),
    "events.speedscope": ("speedscope", ["wall"], ["wall:wall:nanoseconds:cpu:nanoseconds"]),
    "work.cpuprofile": ("cpuprofile", ["samples", "wall"], ["wall:samples:count:cpu:nanoseconds", "wall:wall:nanoseconds:cpu:nanoseconds"]),
    "work.heapprofile": ("heapprofile", ["inuse_space"], ["memory:inuse_space:bytes::"]),
    "gperftools.heap": (
        "legacy pprof", ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"],
        ["memory:%s:space:bytes" % t for t in ("alloc_objects:count", "alloc_space:bytes", "inuse_objects:count", "inuse_space:bytes")],
    ),
    "gperftools.cpu": ("legacy pprof", ["samples", "cpu"], ["process_cpu:samples:count:cpu:nanoseconds", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"]),
    "debug1.goroutine": ("legacy pprof", ["goroutine"], ["goroutines:goroutine:count:goroutine:count"]),
    "debug1.mutex": ("legacy pprof", ["contentions", "delay"], ["mutex:contentions:count:contentions:count", "mutex:delay:nanoseconds:contentions:count"]),
    "debug1.block": ("legacy pprof", ["contentions", "delay"], ["block:contentions:count:contentions:count", "block:delay:nanoseconds:contentions:count"]),
}


def content(name):
    path = GOLDEN / name
    if path.is_file():
        return path.read_bytes()
    return gzip.decompress(next(GOLDEN.glob(name + "*.gz")).read_bytes())


def sums(name, n_types):
    """The sum of each type, from the golden text: its samples end with their values and labels."""
    lines = (GOLDEN / (name + ".txt")).read_text().splitlines()[3:]
    rows = [re.sub(r" \{.*", "", line).split(" ")[-n_types:] for line in lines]
    return [sum(int(row[t]) for row in rows) for t in range(n_types)]


def raw_profile(path):
    """What `pprof -raw` says: sample types, and the values of each stack of addresses."""
    out = subprocess.run([GO_PPROF, "-raw", str(path)], capture_output=True, text=True, check=True, env=dict(os.environ, PPROF_BINARY_PATH="/nowhere")).stdout
    samples, locations = out.split("Samples:\n")[1].split("Locations\n")
    addresses = dict(re.findall(r"^\s+(\d+): (0x[0-9a-f]+)", locations.split("Mappings")[0], re.M))
    types, *rows = [line for line in samples.splitlines() if not re.match(r"\s+bytes:\[", line)]
    stacks = {}
    for row in rows:
        values, stack = row.split(":")
        key = ";".join(addresses[i] for i in reversed(stack.split()))
        old = stacks.get(key, [0] * len(types.split()))
        stacks[key] = [a + int(b) for a, b in zip(old, values.split())]
    return types.split(), stacks


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.directory = temporary_directory()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def adhoc(self, name, data, **more):
        answer = self.server.connect(ADHOC + "Upload", {"name": name, "profile": base64.b64encode(data).decode(), **more})
        return answer, json.loads(answer["flamebearerProfile"])["flamebearer"]["numTicks"]

    def test_ad_hoc_profiles_take_every_format(self):
        for name, (_, types, _) in FILES.items():
            with self.subTest(file=name):
                for data in (content(name), gzip.compress(content(name))):
                    answer, _ = self.adhoc(name, data)
                    self.assertEqual(answer["profileTypes"], types)
                for profile_type, total in zip(types, sums(name, len(types))):
                    got = self.server.connect(ADHOC + "Get", {"id": answer["id"], "profile_type": profile_type})
                    flame = json.loads(got["flamebearerProfile"])["flamebearer"]
                    self.assertEqual((got["profileType"], flame["numTicks"]), (profile_type, total))

    def test_an_ad_hoc_recording_offers_the_types_of_all_its_profiles(self):
        recording = gzip.decompress((ROOT / "tests/golden/jfr/work.jfr.gz").read_bytes())
        answer, total = self.adhoc("work.jfr", recording)
        self.assertEqual((answer["profileTypes"][0], total), ("cpu", 140_000_000))
        self.assertEqual(len(answer["profileTypes"]), len(set(answer["profileTypes"])))
        expected = {"alloc_in_new_tlab_objects": 11, "mutex:contentions:count": 1, "block:contentions:count": 1, "exceptions": 5}
        for profile_type, total in expected.items():
            self.assertIn(profile_type, answer["profileTypes"])
            got = self.server.connect(ADHOC + "Get", {"id": answer["id"], "profile_type": profile_type})
            self.assertEqual(json.loads(got["flamebearerProfile"])["flamebearer"]["numTicks"], total)

        same = self.server.connect(ADHOC + "Diff", {"left_id": answer["id"], "right_id": answer["id"], "profile_type": "mutex:contentions:count"})
        self.assertEqual(same["profileTypes"], answer["profileTypes"])
        self.assertEqual(json.loads(same["flamebearerProfile"])["leftTicks"], 1)

    def test_the_client_uploads_every_format(self):
        environment = {"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port}
        for name, (_, types, stored) in FILES.items():
            with self.subTest(file=name):
                path = os.path.join(self.directory, name)
                with open(path, "wb") as file:
                    file.write(content(name))
                begin = now_ms() - 1000
                done = hearth("upload", path, "--label", "service_name=" + name, env=environment)
                self.assertEqual((done.code, done.err), (0, ""), done.err)
                selector = '{service_name="%s"}' % name
                totals = [self.server.flamegraph(t, selector, begin, now_ms() + 1000).total for t in stored]
                self.assertEqual(totals, sums(name, len(types)))

    def test_ingest_takes_every_format_without_its_name(self):
        for name, (_, types, stored) in FILES.items():
            with self.subTest(file=name):
                begin = now_ms() - 1000
                service = "ingest-" + name
                status, _, answer = self.server.http("POST", "/ingest?name=" + service, content(name))
                self.assertEqual(status, 200, answer)
                selector = '{service_name="%s"}' % service
                totals = [self.server.flamegraph(t, selector, begin, now_ms() + 1000).total for t in stored]
                self.assertEqual(totals, sums(name, len(types)))

    def test_texts_as_windows_writes_them_are_read(self):
        name, (_, types, stored) = "work.cpuprofile", FILES["work.cpuprofile"]
        text = content(name).decode()
        for encoding in ("utf-8-sig", "utf-16"):
            with self.subTest(encoding=encoding):
                self.assertEqual(self.adhoc(name, text.encode(encoding))[0]["profileTypes"], types)
                begin, service = now_ms() - 1000, "windows-" + encoding
                status, _, answer = self.server.http("POST", "/ingest?name=" + service, text.encode(encoding))
                self.assertEqual(status, 200, answer)
                totals = [self.server.flamegraph(t, '{service_name="%s"}' % service, begin, now_ms() + 1000).total for t in stored]
                self.assertEqual(totals, sums(name, len(types)))

    def test_files_of_no_profiler_are_named(self):
        cases = [
            (b'{"version": 1.2}', "the file is JSON; supported are "),
            (b"go 1.22 trace\0\0\0" + b"\1" * 100, "an execution trace of Go"),
            (b"\x7fELF" + b"\0" * 100, "an ELF binary"),
            (b'{"profiles":[{"type":"evented","unit":"none","events":[{"type":"O","at":-1,"frame":0}]}],"shared":{"frames":[{"name":"a"}]}}',
             "event 0 of profile 0: at byte 85: the time is negative"),
        ]
        for data, part in cases:
            with self.subTest(part=part):
                with self.assertRaises(RpcError) as caught:
                    self.adhoc("x", data)
                self.assertEqual(caught.exception.code, "invalid_argument")
                self.assertIn(part, caught.exception.message)

    def test_the_error_for_an_export_of_opentelemetry_tells_how_to_send_it(self):
        exporter = otlp_profiles.Exporter()
        profile = exporter.cpu(now_ms() * 1_000_000, [exporter.sample(exporter.stack("main"), [7])])
        export = exporter.resource({"service.name": "otlp-file"}, profile).export()
        for body, kind in ((otlp_profiles.to_proto(export), otlp_profiles.PROTO), (otlp_profiles.to_json(export), otlp_profiles.JSON)):
            with self.subTest(kind):
                path = os.path.join(self.directory, "shop.otlp")
                with open(path, "wb") as file:
                    file.write(body)
                done = hearth("upload", path, env={"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port})
                hint = "is sent by POST to %s with Content-Type: %s; supported are " % (otlp_profiles.PATH, kind)
                self.assertEqual((done.code, done.out), (2, ""))
                self.assertIn("hearth: %s: the file is an export of OpenTelemetry's profiles (OTLP " % path, done.err)
                self.assertIn(hint, done.err)
                status, _, answer = self.server.http("POST", "/ingest?name=otlp-file", body)
                self.assertEqual(status, 422, answer)
                self.assertIn(hint, json.loads(answer)["message"])
                # As the hint says.
                self.assertEqual(self.server.http("POST", otlp_profiles.PATH, body, {"Content-Type": kind})[0], 200)

    @needs_go
    def test_go_tool_pprof_reads_equal_profiles_from_legacy_files(self):
        for name, (_, types, _) in FILES.items():
            if FILES[name][0] != "legacy pprof":
                continue
            with self.subTest(file=name):
                theirs, stacks = raw_profile(GOLDEN / name)
                self.assertEqual([t.split("/")[0] for t in theirs], types)
                totals = [sum(values[t] for values in stacks.values()) for t in range(len(types))]
                self.assertEqual(totals, sums(name, len(types)))
                if name.startswith("gperftools"):  # those of Go have functions instead of addresses
                    ours = {}
                    for line in (GOLDEN / (name + ".txt")).read_text().splitlines()[3:]:
                        stack, *values = line.split(" ")
                        ours[stack] = [int(v) for v in values]
                    self.assertEqual(ours, stacks)


class Absurd(unittest.TestCase):
    """Ordinary files are absurd for a server with tiny limits."""

    def test_a_refused_file_names_the_option_that_raises_its_limit(self):
        server = Server("--max-table-entries=5", "--max-stack-frames=5")
        self.addCleanup(server.stop)
        pprof = gzip.decompress((ROOT / "tests/golden/pprof/go-cpu-labels.pb.gz").read_bytes())
        perf = (ROOT / "tests/golden/perf/work.perf.data").read_bytes()
        jfr = gzip.decompress((ROOT / "tests/golden/jfr/work.jfr.gz").read_bytes())
        cases = [
            (content("busy.speedscope"), "more than 5 frames", "max-table-entries"),
            (content("work.cpuprofile"), "the nodes have more than 5 children", "max-table-entries"),
            (content("work.heapprofile"), "the calls have more than 5 nodes", "max-table-entries"),
            (pprof, "strings, functions, locations and mappings; the limit is 5", "max-table-entries"),
            (perf, "more than 5 processes, threads, files and maps", "max-table-entries"),
            (jfr, "more than 5 frames in sum", "max-stack-frames"),
            (content("gperftools.heap"), "more than 5 frames in sum", "max-stack-frames"),
        ]
        for data, why, option in cases:
            with self.subTest(why=why):
                status, _, answer = server.http("POST", "/ingest?name=absurd", data)
                self.assertEqual(status, 422, answer)
                self.assertIn(why.encode(), answer)
                self.assertIn(b"raise it with --" + option.encode() + b", or for one tenant with hearth admin limits", answer)


if __name__ == "__main__":
    unittest.main()
