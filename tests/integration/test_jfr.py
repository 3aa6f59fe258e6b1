"""POST /ingest with recordings of Java's Flight Recorder: what a Java service sends, and what can be asked of it."""

import gzip
import json
import pathlib
import unittest
import urllib.parse

import wire
from pprof import Decoded
from server import ROOT, SHARED, Server, note, now_ms, temporary_directory
from test_cli import hearth
from test_ingest import form

T = now_ms() - 300_000
START, END = T - 3_600_000, T + 3_600_000
RECORDING = gzip.decompress((ROOT / "tests/golden/jfr/work.jfr.gz").read_bytes())

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
WALL = "wall:wall:nanoseconds:wall:nanoseconds"
MS = 1_000_000

# The profile types of our own recording, and the sums that `jfr summary` and Work.java give.
OURS = {
    CPU: 140 * MS,
    "memory:alloc_in_new_tlab_objects:count:space:bytes": 11,
    "memory:alloc_outside_tlab_objects:count:space:bytes": 1690,
    "mutex:contentions:count:mutex:count": 1,
    "block:contentions:count:block:count": 1,
    "synchronization:waits:count::": 2,
    "file_io:file_reads:count::": 6,
    "file_io:file_writes:count::": 1,
    "file_io:file_write_bytes:bytes::": 12345,
    "exceptions:exceptions:count::": 5,
}

# Events of the collection's manifest: the profile type, the sum that becomes its total (None: their number).
COUNTED = [
    ("jdk.ObjectAllocationInNewTLAB", "memory:alloc_in_new_tlab_objects:count:space:bytes", None),
    ("jdk.ObjectAllocationInNewTLAB", "memory:alloc_in_new_tlab_bytes:bytes:space:bytes", "tlabSize"),
    ("jdk.ObjectAllocationOutsideTLAB", "memory:alloc_outside_tlab_objects:count:space:bytes", None),
    ("jdk.ObjectAllocationOutsideTLAB", "memory:alloc_outside_tlab_bytes:bytes:space:bytes", "allocationSize"),
    ("jdk.ObjectAllocationSample", "memory:alloc_sample_objects:count:space:bytes", None),
    ("jdk.ObjectAllocationSample", "memory:alloc_sample_bytes:bytes:space:bytes", "weight"),
    ("profiler.LiveObject", "memory:live:count:objects:count", None),
    ("profiler.LiveObject", "memory:live_bytes:bytes:objects:count", "allocationSize"),
    ("profiler.Malloc", "memory:malloc_objects:count::", None),
    ("profiler.Malloc", "memory:malloc_bytes:bytes::", "size"),
    ("jdk.JavaMonitorEnter", "mutex:contentions:count:mutex:count", None),
    ("jdk.ThreadPark", "block:contentions:count:block:count", None),
    ("jdk.JavaMonitorWait", "synchronization:waits:count::", None),
]


class Jfr(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-profile-bytes", "16m")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = self.id().rsplit(".", 1)[1]

    def upload(self, body, headers=None, service=None, **arguments):
        arguments = {"name": service or self.service, "from": T // 1000, "until": T // 1000 + 10, "spyName": "javaspy",
                     "sampleRate": 100, **arguments}
        return self.server.http("POST", "/ingest?" + urllib.parse.urlencode(arguments), body, headers)

    def stored(self, *arguments, **options):
        status, headers, answer = self.upload(*arguments, **options)
        self.assertEqual((status, answer), (200, b""), answer)
        return headers

    def graph(self, profile_type, more="", service=None):
        return self.server.flamegraph(profile_type, '{service_name="%s"%s}' % (service or self.service, more), START, END)

    def values(self, label, more=""):
        return self.server.connect("querier.v1.QuerierService/LabelValues", {
            "name": label, "matchers": ['{service_name="%s"%s}' % (self.service, more)], "start": START, "end": END,
        }).get("names", [])

    def check_ours(self, headers):
        self.assertNotIn("hearth-dropped", headers)
        for profile_type, total in OURS.items():
            self.assertEqual(self.graph(profile_type).total, total, profile_type)

    def test_a_recording_is_stored_as_one_profile_of_each_kind(self):
        self.check_ours(self.stored(RECORDING, format="jfr"))
        self.assertIn("Work.burn", self.graph(CPU).names)
        self.assertIn("Work$$Lambda_.run", self.graph(CPU).names)
        self.assertEqual(self.values("pyroscope_spy"), ["javaspy"])

    def test_a_recording_is_one_upload_with_all_its_types(self):
        self.stored(RECORDING, format="jfr")
        listed = "hearth.v1.ProfileService/"
        condition = {"labelSelector": '{service_name="%s"}' % self.service, "start": START, "end": END}
        row, = self.server.connect(listed + "ListProfiles", {"filter": condition})["profiles"]
        answer = self.server.connect(listed + "GetProfile", {"id": row["id"]})
        totals = {t["profileType"]: int(t["total"]) for t in answer["types"]}
        self.assertEqual({t: totals.get(t) for t in OURS}, OURS)
        self.assertEqual(sorted(totals), row["profileTypes"])
        self.assertEqual(len(answer["series"]), int(row["seriesCount"]))
        facets = self.server.connect(listed + "ProfileFacets", {"filter": condition, "labels": ["__profile_type__"], "limit": 1000})
        values = {v["value"]: v["profileCount"] for v in facets["facets"][0]["values"]}
        self.assertEqual(values, {t: "1" for t in totals})

        # One pprof with all of them; two types are called contentions.
        pprof = Decoded(self.server.connect_proto(listed + "GetProfilePprof", wire.encode([(1, row["id"])]))[0])
        sums = dict(zip((name for name, _ in pprof.sample_types), pprof.totals()))
        self.assertEqual(len(sums), len(totals))
        self.assertEqual([sums[name] for name in ("cpu", "mutex_contentions", "block_contentions", "exceptions")], [140 * MS, 1, 1, 5])

    def test_every_wrapping_of_the_java_sdk_is_read(self):
        zipped = gzip.compress(RECORDING)
        bodies = [
            (zipped, {}), (RECORDING, {}), (gzip.compress(zipped), {"Content-Encoding": "gzip"}),
            form([("jfr", "jfr", zipped), ("labels", "labels", gzip.compress(b""))])[::-1],
            form([("labels", "labels", b""), ("jfr", "jfr", RECORDING)])[::-1],
        ]
        for i, (body, headers) in enumerate(bodies):
            for given in ({"format": "jfr"}, {}):
                service = "%s-%d-%d" % (self.service, i, len(given))
                with self.subTest(service=service):
                    self.stored(body, headers, service=service, **given)
                    self.assertEqual(self.graph(CPU, service=service).total, OURS[CPU])

    def test_threads_are_attributes_of_samples_and_make_no_series(self):
        self.stored(RECORDING, format="jfr")
        answer = self.server.connect("hearth.v1.QueryService/Top", {
            "selection": {"labelSelector": '{service_name="%s"}' % self.service, "profileType": CPU,
                          "start": START, "end": END},
            "kind": "TOP_KIND_THREAD",
        })
        totals = {row["name"]: int(row["total"]) for row in answer["rows"]}
        self.assertEqual(sum(totals.values()), OURS[CPU])
        self.assertTrue(any(name.startswith("other") for name in totals), totals)

    def test_the_time_is_that_of_the_request_and_otherwise_the_recordings_own(self):
        earlier = T - 7_200_000
        moved = RECORDING[:32] + (earlier * MS).to_bytes(8, "big") + RECORDING[40:]
        selector = '{service_name="%s"}' % self.service
        ranges = [(START, END), (earlier - 1000, earlier + 1000)]

        def totals():
            return [self.server.flamegraph(CPU, selector, *times).total for times in ranges]

        self.stored(moved, format="jfr")
        self.assertEqual(totals(), [OURS[CPU], 0])
        status, _, answer = self.server.http("POST", "/ingest?name=%s&format=jfr" % self.service, moved)
        self.assertEqual(status, 200, answer)
        self.assertEqual(totals(), [OURS[CPU], OURS[CPU]])

    def test_damaged_and_foreign_recordings_are_refused_with_the_place(self):
        cases = [
            (RECORDING[:-13], "the JFR chunk at byte 0 declares %d bytes; %d are left" % (len(RECORDING), len(RECORDING) - 13)),
            (RECORDING[:4] + b"\0\1\0\0" + RECORDING[8:], "its version is 1.0; recordings of JDK 11 and later"),
            (RECORDING[:24] + b"\0" * 8 + RECORDING[32:], "it is unfinished"),
            (b"FLR\0", "are not a chunk"),
            (b"garbage", "not a JFR recording"),
        ]
        for body, part in cases:
            with self.subTest(part=part):
                status, _, answer = self.upload(body, format="jfr")
                self.assertEqual(status, 422, answer)
                message = json.loads(answer)["message"]
                self.assertIn("pushing IngestInput-jfr failed", message)
                self.assertIn(part, message)

    def test_a_recording_above_the_limit_is_refused_with_the_option(self):
        server = Server("--max-profile-bytes", "100000")
        try:
            status, _, answer = server.http("POST", "/ingest?name=a&format=jfr&from=%d" % (T // 1000), gzip.compress(RECORDING))
            self.assertEqual(status, 422, answer)
            self.assertIn("the limit is 100000; raise it with --max-profile-bytes", json.loads(answer)["message"])
        finally:
            server.stop()

    @unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
    def test_shared_recordings_have_the_totals_of_the_manifest(self):
        for line in (SHARED / "MANIFEST.tsv").read_text().splitlines()[1:]:
            columns = line.split("\t")
            name, facts = columns[0], json.loads(columns[-1] or "{}")
            if not name.startswith("jfr/asprof") and not name.startswith("jfr/dd") and not name.startswith("jfr/jdk"):
                continue
            if "prof" not in facts:
                continue
            with self.subTest(file=name):
                events = facts["prof"]
                service = "%s-%s" % (self.service, name.split("/")[1])
                self.stored((SHARED / name).read_bytes(), format="jfr", service=service)
                for event, profile_type, key in COUNTED:
                    if event in events:
                        want = events[event]["sums"][key] if key else events[event]["n"]
                        self.assertEqual(self.graph(profile_type, service=service).total, want, profile_type)
                note("%s: %s" % (name, ", ".join("%s %d" % (e.split(".")[1], f["n"]) for e, f in events.items())))

    @unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
    def test_cpu_samples_of_sleeping_threads_do_not_count_and_labels_of_contexts_do(self):
        labels = (SHARED / "jfr/asprof-spancontext-new.labels.pb.gz").read_bytes()
        recording = (SHARED / "jfr/asprof-spancontext-new.jfr.gz").read_bytes()
        headers, body = form([("jfr", "jfr", recording), ("labels", "labels", labels)])
        self.stored(body, headers)
        self.assertEqual(self.graph(CPU).total, 472 * 10 * MS)
        self.assertEqual(self.values("jfr_event"), ["ctimer"])
        self.assertEqual(sorted(self.values("dyn1") + self.values("dyn2")), ["v1", "v2"])

        sleeping = self.service + "-sleeping"
        self.stored((SHARED / "jfr/asprof-200k-samples-62-stacks.jfr.gz").read_bytes(), format="jfr", service=sleeping)
        self.assertEqual(self.graph(CPU, service=sleeping).total, 112 * 10 * MS)
        wall = self.service + "-wall"
        self.stored((SHARED / "jfr/asprof-wall.jfr.gz").read_bytes(), format="jfr", service=wall)
        self.assertEqual(self.graph(WALL, service=wall).total, 26246 * 10 * MS)

    def test_the_client_uploads_each_profile_of_a_recording_once(self):
        path = pathlib.Path(temporary_directory()) / "work.jfr"
        path.write_bytes(RECORDING)
        environment = {"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port}
        arguments = ("upload", str(path), "--label", "service_name=" + self.service, "--time", "now")
        for expected in ("process_cpu, 7 samples, 1 sample type", "stored already"):
            done = hearth(*arguments, env=environment)
            self.assertEqual(done.code, 0, done.err)
            self.assertIn(expected, done.out)
        begin, end = now_ms() - 60_000, now_ms() + 60_000
        for profile_type in (CPU, "memory:alloc_in_new_tlab_objects:count:space:bytes", "exceptions:exceptions:count::"):
            graph = self.server.flamegraph(profile_type, '{service_name="%s"}' % self.service, begin, end)
            self.assertEqual(graph.total, OURS[profile_type])

    @unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
    def test_a_recording_uploaded_by_the_client_has_the_event_of_async_profiler(self):
        environment = {"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port}
        path = str(SHARED / "jfr/asprof-spancontext-new.jfr.gz")
        done = hearth("upload", path, "--label", "service_name=" + self.service, "--time", "now", env=environment)
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.values("jfr_event"), ["ctimer"])

    @unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
    def test_profiles_of_one_name_are_all_stored(self):
        """Allocations and live objects are both "memory", with the same labels."""
        self.stored((SHARED / "jfr/asprof-contextid-cpu-live.jfr.gz").read_bytes(), format="jfr")
        self.assertEqual(self.graph("memory:live:count:objects:count").total, 4)
        self.assertEqual(self.graph("memory:alloc_in_new_tlab_objects:count:space:bytes").total, 4)


if __name__ == "__main__":
    unittest.main()
