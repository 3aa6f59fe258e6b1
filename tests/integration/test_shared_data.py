"""Every pprof of the shared data, pushed and merged back: totals, stacks, functions and lines as in the file.

Oracles: the totals that MANIFEST.tsv says, pprof.py's own reading of the file, and go tool pprof over the file and over
what Hearth gave back.
"""

import base64
import csv
import gzip
import json
import os
import re
import subprocess
import tempfile
import unittest

import wire
from pprof import Decoded, inflate
from questions import FlameGraph
from server import SHARED, RpcError, Server, in_threads, note, now_ms

# Its own program, not through `go tool`, which takes longer to start than the rest.
GO_PPROF = "/usr/lib/go-1.19/pkg/tool/linux_amd64/pprof"

needs_go = unittest.skipUnless(os.access(GO_PPROF, os.X_OK), "go 1.19's pprof is not installed (golang-1.19-go)")

# Refused, and what the message must say.
REFUSED = {
    "pprof/legacy-not-protobuf/cppbench.heap": "heap",
    "pprof/legacy-not-protobuf/java.cpu": "legacy",
    "pprof/malformed/bad-gzip-checksum.pgo": "",
    "pprof/malformed/go-fuzz-corpus-6281ce98.txt": "text",
}


def fields(data):
    """The top-level fields of a message as (number, raw bytes with tag)."""
    at = 0
    while at < len(data):
        start = at
        key, at = wire.read_varint(data, at)
        if key & 7 == 0:
            _, at = wire.read_varint(data, at)
        elif key & 7 == 2:
            size, at = wire.read_varint(data, at)
            at += size
        else:
            raise AssertionError("wire type %d" % (key & 7))
        yield key >> 3, data[start:at]


def at_time(data, time_ns):
    """The same profile taken at another time: the last of a repeated field counts."""
    return inflate(data) + wire.encode([(9, time_ns)])


def normalised(data):
    """For go: without samples that ingest drops, and without drop_frames and keep_frames, which a server does not apply."""
    out = []
    for number, raw in fields(inflate(data)):
        if number == 2:
            _, at = wire.read_varint(raw, 0)
            size, at = wire.read_varint(raw, at)
            values = wire.ints(wire.decode(raw[at:]).get(2, []))
            if any(v < 0 for v in values) or not any(values):
                continue
        if number not in (7, 8):
            out.append(raw)
    return b"".join(out)


def go_top(data, sample_type, unit, *options):
    """{name: (flat, cum)} of go tool pprof -top, in whole units."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        done = subprocess.run(
            [
                GO_PPROF, "-top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0", "-symbolize=none",
                "-sample_index=%s" % sample_type, "-unit=%s" % unit, *options, file.name,
            ],
            # Collecting garbage of so short a life costs a quarter of its time.
            capture_output=True, text=True,
            env={"HOME": "/nonexistent", "PPROF_TMPDIR": "/nonexistent", "GOGC": "off", "GOMAXPROCS": "1"},
        )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    out = {}
    for line in done.stdout.split("cum%\n", 1)[1].splitlines():
        flat, _, _, cum, _, name = line.split(None, 5)
        name = name.removesuffix(" (inline)").removesuffix(" (partial-inline)")
        numbers = tuple(int(re.fullmatch(r"(-?\d+)[A-Za-z]*", n).group(1)) for n in (flat, cum))
        before = out.get(name, (0, 0))
        out[name] = (before[0] + numbers[0], before[1] + numbers[1])
    return out


def flame_name(line):
    """What a flame graph calls a frame: the function; the file's base name and the offset there."""
    name, file, number = line
    return "%s+%s" % (os.path.basename(file), name) if number is None and file else name


UNITS = {"nanoseconds": "ns", "bytes": "B"}


@unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
class SharedData(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(SHARED / "MANIFEST.tsv", newline="") as manifest:
            rows = list(csv.DictReader(manifest, delimiter="\t", quoting=csv.QUOTE_NONE))
        cls.facts = {r["file"]: json.loads(r["facts_json"]) for r in rows if r["file"].startswith("pprof/")}
        cls.bytes = {name: (SHARED / name).read_bytes() for name in cls.facts}
        cls.good = sorted(name for name in cls.facts if name not in REFUSED)
        # What is compared is what the files have; test_go_stacks has the oracle of repaired stacks.
        cls.server = Server(
            "--max-label-sets", "1000000", "--max-samples", "10000000", "--max-stack-depth", "100000",
            "--repair-go-stacks=false",
        )
        cls.time_ms = now_ms()
        cls.dropped, cls.decoded, cls.merges = {}, {}, {}
        for name in cls.good:
            cls.decoded[name] = Decoded(cls.bytes[name])
            body = gzip.compress(at_time(cls.bytes[name], cls.time_ms * 1_000_000), 1)
            found = cls.server.push(body, {"__name__": "shared", "service_name": "shared-" + name[6:8], "file": name})
            text = found.get("hearth-dropped", "")
            cls.dropped[name] = {k: int(v) for k, v in (part.split("=") for part in text.split(", "))} if text else {}

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def types(self, name):
        """[(index, profile type id)]"""
        d = self.decoded[name]
        period = d.period_type or ("", "")
        return [(k, ":".join(("shared",) + t + period)) for k, t in enumerate(d.sample_types)]

    def ask(self, name):
        return ('{file="%s"}' % name, self.time_ms, self.time_ms)

    def merged(self, name, type_id):
        """(raw merged message, decoded); asked once."""
        if (name, type_id) not in self.merges:
            data = self.server.merge_pprof(type_id, *self.ask(name))
            self.merges[name, type_id] = (data, Decoded(data))
        return self.merges[name, type_id]

    def each(self):
        return [(name, k, type_id) for name in self.good for k, type_id in self.types(name)]

    def test_the_shared_directory_has_more_than_forty_files(self):
        self.assertGreater(len(self.good), 40)

    def test_totals_are_those_of_the_manifest(self):
        for name, k, type_id in self.each():
            with self.subTest(file=name, type=type_id):
                d = self.decoded[name]
                total = self.facts[name]["totals"]["%s/%s" % d.sample_types[k]]
                if "negative" in " ".join(self.facts[name]["odd"]):
                    # The manifest's total is of all samples: those that ingest drops are taken off.
                    self.assertIn("negative_samples", self.dropped[name])
                    total -= sum(values[k] for _, values, _ in d.samples if min(values) < 0)
                self.assertEqual(self.server.flamegraph(type_id, *self.ask(name)).total, total)
                series = self.server.select_series(type_id, *self.ask(name), 1)
                self.assertEqual(sum(v for _, points in series for _, v in points), float(total))
                self.assertEqual(sum(self.merged(name, type_id)[1].totals()), total)

    def test_stacks_are_equal_by_content(self):
        """And with them the totals of functions and lines, which are sums over stacks."""
        for name, k, type_id in self.each():
            with self.subTest(file=name, type=type_id):
                found = self.merged(name, type_id)[1].by_stack(0, exact=True)
                self.assertTrue(found == self.decoded[name].by_stack(k, exact=True), "the stacks differ")

    def test_flame_graphs_have_the_functions_of_the_file(self):
        for name, k, type_id in self.each():
            with self.subTest(file=name, type=type_id):
                answer = self.server.stacktraces(type_id, *self.ask(name), max_nodes=1048576)
                found = FlameGraph(answer[1][-1]).functions()
                self.assertTrue(found == self.decoded[name].by_function(k, frame=flame_name), "the functions differ")

    @needs_go
    def test_go_tool_pprof_prints_equal_tables_of_the_file_and_the_answer(self):
        work = []
        for name in self.good:
            original = normalised(self.bytes[name])
            for k, type_id in self.types(name):
                merged = self.merged(name, type_id)[0]
                kind, unit = self.decoded[name].sample_types[k]
                # go selects no type without a plain name. Lines of one type say enough: the stacks are the same.
                modes = ["-functions"] + ["-lines"] * (k == len(self.decoded[name].sample_types) - 1)
                if merged and kind and " " not in kind:
                    work += [(name, k, original, merged, kind, UNITS.get(unit, unit), mode) for mode in modes]
        self.assertGreater(len(work), 100)
        found = {}

        def half(part):
            for name, k, original, merged, *ask in work[part::2]:
                found[name, k, ask[2]] = (go_top(original, *ask), go_top(merged, *ask))

        in_threads([lambda: half(0), lambda: half(1)])
        for name, k, *_, mode in work:
            with self.subTest(file=name, type=k, mode=mode):
                file, answer = found[name, k, mode]
                self.assertGreater(len(file), 0)
                self.assertTrue(answer == file, "go says something else of the answer than of the file")

    @needs_go
    def test_go_tool_pprof_and_this_test_read_equal_values(self):
        for name in ("pprof/go-cpu-fib-3s.pb.gz", "pprof/go-cpu-gdu-v2.pb.gz", "pprof/php-wordpress-3-sample-types-uncompressed.pprof"):
            for k, (kind, unit) in enumerate(self.decoded[name].sample_types):
                theirs = go_top(normalised(self.bytes[name]), kind, UNITS.get(unit, unit), "-functions")
                own = self.decoded[name].by_function(k)
                self.assertEqual({n: v for n, v in theirs.items() if v != (0, 0)}, own)

    def test_merging_two_files_is_the_sum_of_both(self):
        names = ["pprof/go-cpu-merge-a.pb.gz", "pprof/go-cpu-merge-b.pb.gz"]
        expected = self.decoded["pprof/go-cpu-merge-a-plus-b-expected.pb.gz"]
        for k, type_id in self.types(names[0]):
            data = self.server.merge_pprof(type_id, '{file=~"%s"}' % "|".join(names), self.time_ms, self.time_ms)
            self.assertEqual(Decoded(data).totals(), [expected.totals()[k]])
            self.assertEqual(Decoded(data).by_function(0, True), expected.by_function(k, True))

    def test_dropped_samples_are_counted(self):
        for name in self.good:
            with self.subTest(name):
                d = self.decoded[name]
                negative = sum(1 for s in d.samples if any(v < 0 for v in s[1]))
                zero = sum(1 for s in d.samples if not any(s[1]))
                self.assertEqual(self.dropped[name].get("negative_samples", 0), negative)
                self.assertEqual(self.dropped[name].get("zero_samples", 0), zero)
                self.assertFalse({"cut_stacks", "split_labels", "dangling_samples"} & set(self.dropped[name]))

    def test_trace_and_thread_labels_of_real_files_are_no_series_labels(self):
        names = self.server.label_names(
            self.time_ms, self.time_ms, metadata=[("accept", "*/*;allow-utf8-labelnames=true")]
        )
        self.assertIn("grpcmethod", names)
        self.assertIn("container_id", names)
        for name in ("thread_id", "thread_name", "thread id", "threadid", "bytes"):
            self.assertNotIn(name, names)

    def test_damaged_and_legacy_files_are_refused_and_the_server_lives(self):
        for name, part in REFUSED.items():
            with self.subTest(name):
                with self.assertRaises(RpcError) as caught:
                    self.server.push(self.bytes[name], {"__name__": "shared", "service_name": "bad", "file": name})
                self.assertEqual(caught.exception.code, "invalid_argument", caught.exception.message)
                self.assertIn(part, caught.exception.message)
        self.assertEqual(self.server.http("GET", "/ready")[0], 200)
        self.assertEqual(self.server.label_values("service_name", self.time_ms, self.time_ms, ['{service_name="bad"}']), [])

    def test_files_of_today_with_their_own_time_are_outside_the_window(self):
        with self.assertRaises(RpcError) as caught:
            self.server.push(self.bytes["pprof/go-cpu-fib-3s.pb.gz"], {"__name__": "shared"})
        self.assertIn("outside of ingestion window", caught.exception.message)


# Where the sums of a recording's events are in its types, and the condition of test_jfr on them.
JFR_TYPES = {
    "jdk.ObjectAllocationInNewTLAB": "alloc_in_new_tlab_objects", "jdk.ObjectAllocationOutsideTLAB": "alloc_outside_tlab_objects",
    "jdk.ObjectAllocationSample": "alloc_sample_objects", "profiler.LiveObject": "live", "profiler.Malloc": "malloc_objects",
    "jdk.JavaMonitorEnter": "mutex:contentions:count", "jdk.ThreadPark": "block:contentions:count",
    "jdk.JavaMonitorWait": "waits", "jdk.JavaExceptionThrow": "exceptions",
}
TO_NS = {"nanoseconds": 1, "microseconds": 1000, "milliseconds": 10**6, "seconds": 10**9}
NO_FILE = ("OTLP", "jsonl", "yaml", "text (expected", "collapsed gzip (expected", "pyroscope LabelsSnapshot")


def speedscope_totals(data):
    """{type: total} by the rules of speedscope's documentation, read by json."""
    totals = {}
    for part in json.loads(data)["profiles"]:
        kind, factor = ("wall", TO_NS[part["unit"]]) if part["unit"] in TO_NS else ("samples", 1)
        if part["type"] == "sampled":
            value = sum(round(w * factor) for w in part["weights"])
        else:
            value, depth, before = 0, 0, 0
            for event in part["events"]:
                value += (event["at"] - before) * factor if depth else 0
                depth, before = depth + (1 if event["type"] == "O" else -1), event["at"]
        totals[kind] = totals.get(kind, 0) + round(value)
    return totals


def expected_totals(name, kind, facts, data):
    """What a file's totals are by the manifest, by another program, or by another reading of the file; {type: total}."""
    if kind.startswith("JFR"):
        if "prof" not in facts:
            return {}
        return {JFR_TYPES[event]: found["n"] for event, found in facts["prof"].items() if event in JFR_TYPES}
    if kind.startswith("collapsed"):
        return {"samples": facts["total"]} if "total" in facts else {}
    if kind == "perf-script":
        return {"samples": facts["events"]}
    if kind == "perf.data":
        return {"samples": facts["perf_script_6_1"]["events"]} if "perf_script_6_1" in facts else {}
    if kind == "speedscope":
        return speedscope_totals(data)
    if kind == "cpuprofile":
        profile = json.loads(data)
        return {"samples": facts["samples"], "wall": (profile["endTime"] - profile["startTime"] - profile["timeDeltas"][0]) * 1000}
    if kind == "pprof-legacy" and os.access(GO_PPROF, os.X_OK):
        raw = subprocess.run([GO_PPROF, "-raw", str(SHARED / name)], capture_output=True, text=True, check=True).stdout
        head, *rows = [line for line in raw.split("Samples:\n")[1].split("Locations")[0].splitlines() if "bytes:[" not in line]
        return {t.split("/")[0]: sum(int(row.split(":")[0].split()[i]) for row in rows) for i, t in enumerate(head.split())}
    if "totals" not in facts:
        return {}
    types = [t.rsplit("/", 1) for t in facts["totals"]]
    names = [t[0] if sum(t[0] == other[0] for other in types) == 1 else ":".join(t) for t in types]
    return dict(zip(names, facts["totals"].values()))


@unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
class EveryFile(unittest.TestCase):
    """Every file of the manifest as an ad hoc profile: one line each says what became of it."""

    # Refused, and why. What is neither here nor refused has the totals of the manifest.
    REFUSED = {
        "collapsed/odd-invalid-lines.txt": "line 2 is not of the form",
        "jfr/truncated/jdk17-gradle-13-bytes-short.jfr": "declares 1613086 bytes",
        "jfr/unsupported/jdk8u40-jfr-v0.9.jfr": "versions 1 and 2 are supported",
        "jfr/unsupported/jdk9-jfr-v1.0.jfr": "JDK 11 and later",
        "pprof/go-heap-negative-values.pb.gz": "has a negative value",
        "pprof/legacy-not-protobuf/java.cpu": "a legacy binary CPU profile of Java",
        "pprof/malformed/bad-gzip-checksum.pgo": "",
        "pprof/malformed/go-fuzz-corpus-6281ce98.txt": "",
        "speedscope/ruby-stackprof-simple-cpu.json": "the file is JSON",
    }

    @classmethod
    def setUpClass(cls):
        cls.server = Server(
            "--max-adhoc-profile-bytes=64m", "--max-adhoc-profiles=1000", "--max-adhoc-bytes=1g", "--max-label-sets=1000000",
        )

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def graph(self, answer):
        return json.loads(answer["flamebearerProfile"])["flamebearer"]["numTicks"]

    def totals(self, answer, types):
        service = "adhocprofiles.v1.AdHocProfileService/Get"
        return {t: self.graph(self.server.connect(service, {"id": answer["id"], "profile_type": t})) for t in types}

    def result(self, name, kind, facts):
        """(what became of a file, whether that is as it must be)"""
        data = (SHARED / name).read_bytes()
        try:
            answer = self.server.connect(
                "adhocprofiles.v1.AdHocProfileService/Upload",
                {"name": name.split("/")[-1], "profile": base64.b64encode(data).decode()},
            )
        except RpcError as error:
            return "refused: %s" % error.message[:120], name in self.REFUSED and self.REFUSED[name] in error.message

        plain = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        expected = {t: n for t, n in expected_totals(name, kind, facts, plain).items() if t in answer["profileTypes"]}
        if not expected:
            return "decoded, %s; nothing to compare" % ", ".join(answer["profileTypes"]), name not in self.REFUSED
        try:
            found = self.totals(answer, expected)
        except RpcError as error:
            return "not shown: %s" % error.message[:120], name in self.REFUSED and self.REFUSED[name] in error.message
        equal = found == expected
        return "totals %s: %s" % ("equal" if equal else "differ from %s" % expected, found), equal and name not in self.REFUSED

    def test_every_file_of_the_manifest_is_read_exactly_or_refused_with_the_reason(self):
        with open(SHARED / "MANIFEST.tsv", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        counts = {}
        for row in rows:
            name, kind = row["file"], row["format"]
            with self.subTest(file=name):
                if kind.startswith(NO_FILE):
                    result, ok = "not a file of a profiler", True
                else:
                    result, ok = self.result(name, kind, json.loads(row["facts_json"] or "{}"))
                note("%s (%s): %s" % (name, kind, result))
                counts[result.split(",")[0].split(":")[0]] = counts.get(result.split(",")[0].split(":")[0], 0) + 1
                self.assertTrue(ok, result)
        note("files of the manifest: %s" % counts)


if not (SHARED / "MANIFEST.tsv").is_file():
    note("no shared data at %s: its tests are skipped" % SHARED)

if __name__ == "__main__":
    unittest.main()
