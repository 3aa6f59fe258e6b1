"""What a tenant keeps beside its profiles: settings of clients, recording rules and their counters, ad hoc profiles."""

import base64
import collections
import gzip
import json
import random
import threading
import time
import unittest

import prometheus
from pprof import Profile
from questions import CPU
from server import Cluster, RpcError, Server, eventually, in_threads, now_ms

SETTINGS = "settings.v1.SettingsService/"
RULES = "settings.v1.RecordingRulesService/"
ADHOC = "adhocprofiles.v1.AdHocProfileService/"
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
MINUTE, BUCKET = 60_000, 600_000
OF_CPU = '{__profile_type__="%s"}' % CPU
BUSY = ["--builder-interval=100ms", "--rollup-grace=1s"]
# Of questions of tenants: sums of rules are none.
SMALL = ["--max-query-lookback=1m", "--max-query-range=30s", "--max-points=1"]


class WithServer(unittest.TestCase):
    options = []

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def refused(self, status, method, message, headers=None):
        with self.assertRaises(RpcError) as caught:
            self.server.connect(method, message, headers)
        self.assertEqual(caught.exception.http_status, status, caught.exception)
        return caught.exception


class Settings(WithServer):
    options = ["--multitenancy", "--max-settings=3", "--max-setting-bytes=1k"]

    def set(self, name, value, tenant="a", **more):
        message = {"setting": {"name": name, "value": value, **more}}
        return self.server.connect(SETTINGS + "Set", message, {"X-Scope-OrgID": tenant})["setting"]

    def get(self, tenant="a"):
        return self.server.connect(SETTINGS + "Get", {}, {"X-Scope-OrgID": tenant}).get("settings", [])

    def test_a_setting_is_kept_for_its_tenant_until_it_is_deleted(self):
        before = now_ms()
        stored = self.set("pluginSettings", '{"maxNodes":16384,"ü":"\\n"}')
        self.assertTrue(before <= int(stored["modifiedAt"]) <= now_ms())
        self.assertEqual(self.get(), [stored])
        self.assertEqual(self.get("b"), [])
        self.server.connect(SETTINGS + "Delete", {"name": "pluginSettings"}, {"X-Scope-OrgID": "a"})
        self.assertEqual(self.get(), [])

    def test_deleting_a_missing_setting_succeeds_and_changes_nothing(self):
        of_h = {"X-Scope-OrgID": "h"}
        self.set("theme", "dark", "h", modifiedAt=2000)
        self.assertEqual(self.server.connect(SETTINGS + "Delete", {"name": "never-set"}, of_h), {})
        self.assertEqual(self.get("h"), [{"name": "theme", "value": "dark", "modifiedAt": "2000"}])

    def test_an_older_change_does_not_replace_a_newer_one(self):
        self.set("theme", "dark", "c", modifiedAt="2000")
        with self.assertRaises(RpcError) as caught:
            self.set("theme", "light", "c", modifiedAt="1999")
        self.assertEqual((caught.exception.code, caught.exception.http_status), ("already_exists", 409))
        self.set("theme", "light", "c", modifiedAt=2000)
        self.assertEqual(self.get("c"), [{"name": "theme", "value": "light", "modifiedAt": "2000"}])

    def test_missing_fields_are_a_bad_request(self):
        of_d = {"X-Scope-OrgID": "d"}
        for message in ({}, {"setting": {"value": "x"}}):
            self.refused(400, SETTINGS + "Set", message, of_d)
        self.refused(400, SETTINGS + "Delete", {"name": ""}, of_d)
        self.refused(401, SETTINGS + "Get", {})

    def test_rules_counters_and_ad_hoc_profiles_are_their_tenants(self):
        of_f, of_g = {"X-Scope-OrgID": "f"}, {"X-Scope-OrgID": "g"}
        rule = {"id": "mine", "metric_name": "m", "matchers": [OF_CPU]}
        self.server.connect(RULES + "UpsertRecordingRule", rule, of_f)
        self.assertEqual(self.server.connect(RULES + "ListRecordingRules", {}, of_g), {})
        self.refused(404, RULES + "DeleteRecordingRule", {"id": "mine"}, of_g)
        self.server.connect(RULES + "UpsertRecordingRule", rule, of_g)
        self.server.sql("INSERT INTO hearth_data.rule_counter SELECT rule_no, 0, '{}', 7 FROM"
                        " hearth_data.recording_rule WHERE tenant = 'f'")
        status, headers, body = self.server.http("GET", "/metrics/rules", headers=of_f)
        self.assertEqual(prometheus.parse(body.decode()), {("m", (("profiles_rule_id", "mine"),)): 7.0})
        self.assertTrue(headers["content-type"].startswith("text/plain; version=0.0.4"))
        self.assertEqual(self.server.http("GET", "/metrics/rules", headers=of_g)[::2], (200, b""))
        self.assertEqual(self.server.http("GET", "/metrics/rules")[0], 401)
        upload = {"name": "x", "profile": base64.b64encode(b"a 1\n").decode()}
        id = self.server.connect(ADHOC + "Upload", upload, of_f)["id"]
        self.refused(404, ADHOC + "Get", {"id": id}, of_g)
        self.assertEqual(self.server.connect(ADHOC + "List", {}, of_g), {})

    def test_number_and_size_have_limits_with_names(self):
        for i in range(3):
            self.set("s%d" % i, "x", "e")
        with self.assertRaises(RpcError) as caught:
            self.set("s3", "x", "e")
        self.assertEqual(caught.exception.http_status, 429)
        self.assertIn("max-settings", caught.exception.message)
        self.set("s2", "y", "e")
        error = self.refused(
            400, SETTINGS + "Set", {"setting": {"name": "s2", "value": "x" * 2000}}, {"X-Scope-OrgID": "e"}
        )
        self.assertIn("max-setting-bytes", error.message)
        self.assertEqual([s["value"] for s in self.get("e")], ["x", "x", "y"])


class RuleBook(WithServer):
    options = ["--max-rules=4", "--builder=false"]

    def upsert(self, **rule):
        message = {"metric_name": "profiles_cpu", "matchers": [OF_CPU], **rule}
        return self.server.connect(RULES + "UpsertRecordingRule", message)["rule"]

    def bad(self, status, **rule):
        with self.assertRaises(RpcError) as caught:
            self.upsert(**rule)
        self.assertEqual(caught.exception.http_status, status, caught.exception)
        return caught.exception.message

    def tearDown(self):
        for rule in self.server.connect(RULES + "ListRecordingRules", {}).get("rules", []):
            self.server.connect(RULES + "DeleteRecordingRule", {"id": rule["id"]})

    def test_a_rule_is_made_found_changed_and_deleted(self):
        made = self.upsert(
            group_by=["service_name"],
            external_labels=[{"name": "team", "value": "b"}, {"name": "env", "value": "a"}],
            stacktrace_filter={"function_name": {"function_name": "main.work", "metric_type": "TOTAL"}},
        )
        self.assertEqual((made["generation"], made["profileType"]), ("1", CPU))
        self.assertNotIn("provisioned", made)
        self.assertEqual([pair["name"] for pair in made["externalLabels"]], ["env", "team"])
        self.assertEqual(made["stacktraceFilter"], {"functionName": {"functionName": "main.work"}})
        self.assertEqual(self.server.connect(RULES + "GetRecordingRule", {"id": made["id"]})["rule"], made)
        self.assertEqual(self.server.connect(RULES + "ListRecordingRules", {})["rules"], [made])
        changed = self.upsert(id=made["id"], generation=1, metric_name="renamed")
        self.assertEqual((changed["generation"], changed["metricName"], changed["id"]), ("2", "renamed", made["id"]))
        self.server.connect(RULES + "DeleteRecordingRule", {"id": made["id"]})
        for method in ("GetRecordingRule", "DeleteRecordingRule"):
            self.refused(404, RULES + method, {"id": made["id"]})
        self.assertEqual(self.server.sql("SELECT count(*) FROM hearth_data.rule_state"), [["0"]])

    def test_two_changes_of_one_generation_conflict(self):
        made = self.upsert(id="mine")
        self.assertEqual(made["id"], "mine")
        self.upsert(id="mine", generation=1, metric_name="a")
        self.assertIn("generation 2, not 1", self.bad(409, id="mine", generation=1, metric_name="b"))
        self.bad(409, id="mine", metric_name="b")
        self.bad(404, id="other", generation=1)

    def test_a_rule_that_cannot_work_is_refused(self):
        bad = {
            "metric name": {"metric_name": "9lives"},
            "no metric name": {"metric_name": ""},
            "no profile type": {"matchers": ['{service_name="a"}']},
            "no matchers": {"matchers": []},
            "two profile types": {"matchers": [OF_CPU, OF_CPU]},
            "a regex of types": {"matchers": ['{__profile_type__=~"%s"}' % CPU]},
            "malformed type": {"matchers": ['{__profile_type__="cpu"}']},
            "malformed selector": {"matchers": [OF_CPU, "{service_name=}"]},
            "group by utf-8": {"group_by": ["service.name"]},
            "grouped twice": {"group_by": ["a", "a"]},
            "external and grouped": {"group_by": ["a"], "external_labels": [{"name": "a", "value": "x"}]},
            "taken label": {"external_labels": [{"name": "profiles_rule_id", "value": "x"}]},
            "no function": {"stacktrace_filter": {"function_name": {"function_name": ""}}},
            "unknown metric type": {"stacktrace_filter": {"function_name": {"function_name": "f", "metric_type": 7}}},
            "id": {"id": "no good"},
        }
        for what, rule in bad.items():
            with self.subTest(what):
                self.bad(400, **rule)
        self.assertEqual(self.server.connect(RULES + "ListRecordingRules", {}), {})

    def test_rules_of_a_tenant_have_a_limit_with_a_name(self):
        in_threads([lambda i=i: self.upsert(id="r%d" % i) for i in range(4)])
        self.assertIn("max-rules", self.bad(429, id="r4"))
        self.upsert(id="r3", generation=1, metric_name="still_possible")


def profile(ts_ms, function, value, more_ns=0):
    made = Profile(TYPES, time_ns=ts_ms * 1_000_000 + more_ns, duration_ns=10**10)
    made.add(["main", function], [1, value])
    made.add(["main", "idle"], [1, 3])
    return made.encode()


class Pusher(threading.Thread):
    """Profiles of a time that is past, in no order, until told to stop; some series and services begin late."""

    def __init__(self, server, seed, since_ms, until_ms):
        super().__init__()
        self.server, self.draw, self.range = server, random.Random(seed), (since_ms, until_ms)
        self.stopping = threading.Event()
        self.pushed, self.error = [], None  # (ts ms, service, pod, function, value)

    def run(self):
        try:
            while not self.stopping.is_set():
                n = len(self.pushed)
                ts = self.draw.randrange(*self.range) // 1000 * 1000 + 500
                more_ns = 0
                if n % 10 == 0:  # the last nanosecond of a minute belongs to it
                    ts, more_ns = ts // MINUTE * MINUTE + MINUTE - 1, 999_999
                service = "s%d" % self.draw.randrange(1 + min(n // 40, 3))
                pod = "p%d" % self.draw.randrange(1 + min(n // 30, 4))
                function = self.draw.choice(["work", "wait"])
                value = self.draw.randrange(1, 10**9)
                labels = {"__name__": "process_cpu", "service_name": service, "pod": pod}
                self.server.push(profile(ts, function, value, more_ns), labels)
                self.pushed.append((ts, service, pod, function, value))
                time.sleep(0.005)
        except Exception as error:
            self.error = error


class Counters(unittest.TestCase):
    """One server takes pushes; two others do background work and are killed in turn."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.front = Server("--builder=false", database_url=cls.cluster.url())
        cls.workers = [Server(*BUSY, *SMALL, database_url=cls.cluster.url()) for _ in range(2)]

    @classmethod
    def tearDownClass(cls):
        for server in [cls.front, *cls.workers]:
            server.stop()
        cls.cluster.stop()

    def upsert(self, **rule):
        return self.front.connect(RULES + "UpsertRecordingRule", {"matchers": [OF_CPU], **rule})["rule"]["id"]

    def move_back(self, start_ms):
        """As if the rules had been made then, and nobody had counted since."""
        self.front.sql("UPDATE hearth_data.recording_rule SET start_ns = %d" % (start_ms * 1_000_000))
        self.front.sql("UPDATE hearth_data.rule_state SET advanced_to = %d" % (start_ms * 1_000_000))

    def counters(self, server):
        body = server.http("GET", "/metrics/rules")[2].decode()
        return prometheus.parse(body) if body else {}

    def holder(self):
        return [s for s in self.workers if s.metrics()["hearth_builder_lease", ()] == 1]

    def wait_until_counted(self, until_ms):
        def done():
            rows = self.front.sql(
                "SELECT (SELECT count(*) FROM hearth_data.rule_state WHERE advanced_to < %d),"
                " (SELECT count(*) FROM hearth_data.profile_late l JOIN hearth_data.roll_state r USING (service_id)"
                " WHERE l.ts < r.built_to), (SELECT count(*) FROM hearth_data.rule_mark),"
                " (SELECT count(*) FROM hearth_data.roll_state WHERE built_to < watermark),"
                " (SELECT count(*) FROM hearth_data.service WHERE service_id NOT IN"
                " (SELECT service_id FROM hearth_data.roll_state))" % (until_ms * 1_000_000)
            )
            return rows == [["0"] * 5]

        eventually(done, 100, 0.1, "counting of all closed minutes")

    def sum_of_series(self, start_ms, end_ms, group_by):
        """{labels: sum} of what SelectSeries says for [start, end)."""
        found = self.front.select_series(
            CPU, "{}", start_ms - 1, end_ms, step=60.0, group_by=group_by  # its first point is of the minute before
        )
        return {tuple(sorted(labels)): sum(v for t, v in points if t >= start_ms) for labels, points in found}

    def test_counters_are_exact_through_late_profiles_kills_and_changes_of_the_worker(self):
        # Buckets that are closed by now; the rules begin within one.
        until = now_ms() // BUCKET * BUCKET
        start = until - 47 * MINUTE
        ids = {
            "pods": self.upsert(metric_name="cpu_total", group_by=["service_name", "pod"]),
            "all": self.upsert(metric_name="cpu_total", external_labels=[{"name": "env", "value": 'a"\\b\n'}]),
            "work": self.upsert(
                metric_name="work_total", group_by=["service_name"],
                stacktrace_filter={"function_name": {"function_name": "work"}},
            ),
        }
        self.move_back(start)
        pushers = [Pusher(self.front, seed, start - 5 * MINUTE, until) for seed in range(3)]
        for pusher in pushers:
            pusher.start()
        seen = collections.defaultdict(float)
        for round in range(4):
            deadline = time.monotonic() + 2
            while time.monotonic() < deadline:
                for key, value in self.counters(self.front).items():
                    self.assertGreaterEqual(value, seen[key], key)
                    seen[key] = value
                time.sleep(0.05)
            victim = (self.holder() or self.workers)[0]
            victim.kill9()
            self.front.sql("UPDATE hearth_data.lease SET expires_at = now()")  # nobody waits for half a minute
            victim.start()
        for pusher in pushers:
            pusher.stopping.set()
        for pusher in pushers:
            pusher.join()
            self.assertIsNone(pusher.error)
        self.assertTrue(seen)
        self.wait_until_counted(until)
        expected = collections.Counter()
        pushed = [one for pusher in pushers for one in pusher.pushed if start <= one[0]]
        self.assertGreater(len(pushed), 300)
        for ts, service, pod, function, value in pushed:
            expected["cpu_total", (("pod", pod), ("profiles_rule_id", ids["pods"]), ("service_name", service))] += value + 3
            expected["cpu_total", (("env", 'a"\\b\n'), ("profiles_rule_id", ids["all"]))] += value + 3
            if function == "work":
                expected["work_total", (("profiles_rule_id", ids["work"]), ("service_name", service))] += value
        for server in [self.front, *self.workers]:
            found = {(name, tuple(sorted(labels))): v for (name, labels), v in self.counters(server).items()}
            self.assertEqual(found, dict(expected))
        by_pod = self.sum_of_series(start, until, ["service_name", "pod"])
        self.assertEqual(
            by_pod,
            {
                tuple(p for p in labels if p[0] != "profiles_rule_id"): value
                for (name, labels), value in expected.items() if ("profiles_rule_id", ids["pods"]) in labels
            },
        )
        self.assertEqual(sum(self.sum_of_series(start, until, []).values()), sum(by_pod.values()))
        for server in self.workers:
            self.assertNotIn("step=rules", server.log())


class NewRule(WithServer):
    options = BUSY + ["--max-rule-series=2"]

    def counters(self):
        body = self.server.http("GET", "/metrics/rules")[2].decode()
        return prometheus.parse(body) if body else {}

    def test_a_rule_counts_from_the_next_minute_on_and_keeps_its_counters_when_renamed(self):
        labels = {"__name__": "process_cpu", "service_name": "s"}
        rule = {"metric_name": "a", "matchers": [OF_CPU, '{service_name="s"}'], "group_by": ["pod"]}
        made = self.server.connect(RULES + "UpsertRecordingRule", rule)["rule"]
        rows = self.server.sql("SELECT start_ns / 1000000 FROM hearth_data.recording_rule")
        start = int(rows[0][0])
        self.assertTrue(start % MINUTE == 0 and now_ms() < start <= now_ms() + MINUTE, start)
        # As if it had been made two minutes earlier; a profile on each side of its start.
        start -= 3 * MINUTE
        for i, ts in enumerate([start - 1, start, start + 500, start + 999]):
            self.server.push(profile(ts, "f", 100), {**labels, "pod": "p%d" % (i % 3)})
        self.server.push(profile(start, "f", 100), {**labels, "service_name": "other"})
        # Both at once, after the pushes: the builder may have folded these profiles by now, and would count them if the rule
        # had begun before and had not advanced yet.
        self.server.sql(
            "UPDATE hearth_data.recording_rule SET start_ns = %d; UPDATE hearth_data.rule_state SET advanced_to = %d"
            % (start * 1_000_000, start * 1_000_000)
        )
        # Three series are there for two counters; which two is decided by size. Late ones are counted one by one.
        eventually(lambda: sorted(self.counters().values()) == [103.0, 103.0], 20, what="two counters")
        eventually(
            lambda: dict(self.server.metrics())["hearth_rule_series_dropped_total", ()] >= 1, 20, what="a series without a counter"
        )
        rule.update(id=made["id"], generation="1", metric_name="b")
        self.server.connect(RULES + "UpsertRecordingRule", rule)
        renamed = self.counters()
        self.assertEqual({name for name, _ in renamed}, {"b"})
        self.assertEqual(sorted(renamed.values()), [103.0, 103.0])
        # What it counts is another thing now: from zero, from the next minute on.
        rule.update(generation="2", group_by=[])
        self.server.connect(RULES + "UpsertRecordingRule", rule)
        self.assertEqual(self.counters(), {})


class AdHoc(WithServer):
    options = ["--max-adhoc-profiles=8", "--max-adhoc-profile-bytes=64k"]

    def upload(self, name, data, **more):
        return self.server.connect(
            ADHOC + "Upload", {"name": name, "profile": base64.b64encode(data).decode(), **more}
        )

    def tearDown(self):
        self.server.sql("DELETE FROM hearth_data.adhoc_profile")

    def test_a_pprof_is_shown_by_each_of_its_types(self):
        data = Profile(TYPES).add(["main", "a"], [2, 70]).add(["main", "b"], [1, 30]).encode(compress=False)
        for body in (data, gzip.compress(data)):
            up = self.upload("my heap/ü.pb.gz", body)
            self.assertRegex(up["id"], r"^[0-9A-HJKMNP-TV-Z]{26}-my_heap___.pb.gz$")
            self.assertEqual((up["name"], up["profileTypes"]), ("my_heap___.pb.gz", ["samples", "cpu"]))
            cpu = self.server.connect(ADHOC + "Get", {"id": up["id"], "profile_type": "cpu"})
            self.assertEqual((cpu["profileType"], cpu["uploadedAt"]), ("cpu", up["uploadedAt"]))
            flame = json.loads(cpu["flamebearerProfile"])
            self.assertEqual(flame["flamebearer"]["numTicks"], 100)
            self.assertEqual(flame["flamebearer"]["maxSelf"], 70)
            self.assertEqual(sorted(flame["flamebearer"]["names"]), ["a", "b", "main", "total"])
            self.assertEqual(flame["flamebearer"]["levels"][:2], [[0, 100, 0, 0], [0, 100, 0, 1]])
            self.assertEqual(
                flame["metadata"],
                {"format": "single", "spyName": "", "sampleRate": 10**9, "units": "samples", "name": "my_heap___.pb.gz"},
            )

    def test_text_formats_are_recognised(self):
        for text in (b"main;a 2\nmain;b 3\n", b"\xff\xfe" + "main;a 5\n".encode("utf-16-le")):
            up = self.upload("stacks.txt", text)
            self.assertEqual(up["profileTypes"], ["samples"])
            self.assertEqual(json.loads(up["flamebearerProfile"])["flamebearer"]["numTicks"], 5)
        for text in (b"[no stack] 1\nmain;a 4\n", b"{main};a 2\n{main};b 3\n"):
            flame = json.loads(self.upload("stacks.txt", text)["flamebearerProfile"])["flamebearer"]
            self.assertEqual(flame["numTicks"], 5)
        perf = b"app 1 10.5:  250000 cpu-clock:\n\t55d0 work+0x1 (/bin/app)\n\t55d1 main+0x2 (/bin/app)\n\n"
        up = self.upload("perf.txt", perf)
        self.assertEqual(sorted(up["profileTypes"]), ["cpu", "samples"])

    def test_the_list_has_the_newest_first(self):
        ids = [self.upload("p%d" % i, b"a;b %d\n" % (i + 1))["id"] for i in range(3)]
        found = self.server.connect(ADHOC + "List", {})["profiles"]
        self.assertEqual(sorted(p["id"] for p in found), sorted(ids))
        self.assertEqual([p["id"] for p in found], sorted(ids, reverse=True))

    def test_two_ad_hoc_profiles_are_compared(self):
        left, right = self.upload("l", b"main;a 2\nmain;b 3\n")["id"], self.upload("r", b"main;b 7\nmain;c 1\n")["id"]
        answer = self.server.connect(ADHOC + "Diff", {"left_id": left, "right_id": right})
        flame = json.loads(answer["flamebearerProfile"])
        self.assertEqual(answer["profileTypes"], ["samples"])
        self.assertEqual((flame["leftTicks"], flame["rightTicks"], flame["flamebearer"]["numTicks"]), (5, 8, 13))
        self.assertEqual(flame["metadata"]["format"], "double")
        self.assertTrue(all(len(level) % 7 == 0 for level in flame["flamebearer"]["levels"]))
        cpu = self.upload("c", Profile([("cpu", "nanoseconds")]).add(["main"], [1]).encode())["id"]
        self.refused(400, ADHOC + "Diff", {"left_id": left, "right_id": cpu})

    def test_unknown_ids_and_uploads_that_are_not_profiles_are_refused(self):
        up = self.upload("x", b"a 1\n")
        self.refused(404, ADHOC + "Get", {"id": "01HZZZZZZZZZZZZZZZZZZZZZZZ-x"})
        self.refused(404, ADHOC + "Diff", {"left_id": up["id"], "right_id": "none"})
        self.refused(400, ADHOC + "Get", {"id": up["id"], "profile_type": "cpu"})
        self.refused(400, ADHOC + "Get", {"id": up["id"], "max_nodes": -1})
        self.refused(400, ADHOC + "Upload", {"name": "x", "profile": "not base64!"})
        for data in (b"", b"\x00\x01\x02", b"no values here", b'{"version":1}', gzip.compress(b"a")[:-4]):
            self.refused(400, ADHOC + "Upload", {"name": "x", "profile": base64.b64encode(data).decode()})

    def test_limits_of_a_push_hold_for_uploads_of_every_format(self):
        limits = [{"name": "max-stack-depth", "value": "3"}, {"name": "max-samples", "value": str(2**32 + 1)}]
        self.server.connect("hearth.v1.AdminService/SetLimits", {"changes": limits})
        self.addCleanup(
            self.server.connect, "hearth.v1.AdminService/SetLimits",
            {"changes": [{"name": limit["name"], "value": "default"} for limit in limits]},
        )
        deep = Profile(TYPES).add(["a", "b", "c", "d"], [1, 1]).add(["a"], [1, 1]).encode()
        for body in (deep, b"a;b;c;d 1\na 1\n"):
            flame = json.loads(self.upload("deep", body)["flamebearerProfile"])["flamebearer"]
            self.assertEqual(sorted(flame["names"]), ["a", "b", "c", "total"])

    def test_errors_name_the_limit_and_no_old_profile_is_deleted(self):
        noise = random.Random(1).randbytes(70_000).hex().encode() + b" 1\n"
        error = self.refused(400, ADHOC + "Upload", {"name": "x", "profile": base64.b64encode(noise).decode()})
        self.assertIn("max-adhoc-profile-bytes", error.message)
        first = self.upload("first", b"a 1\n")["id"]
        for i in range(7):
            self.upload("p%d" % i, b"a 1\n")
        error = self.refused(429, ADHOC + "Upload", {"name": "x", "profile": base64.b64encode(b"a 1\n").decode()})
        self.assertIn("max-adhoc-profiles", error.message)
        self.server.connect(ADHOC + "Get", {"id": first})


if __name__ == "__main__":
    unittest.main(verbosity=2)
