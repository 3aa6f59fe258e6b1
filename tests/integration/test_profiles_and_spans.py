"""Single profiles and spans: merges by profile, span and trace, exemplars and heatmaps, against a model in Python.

Asked of the same data in every state: raw and late, rolled up, compacted, under a deletion and after it.
"""

import base64
import collections
import datetime
import json
import random
import re
import unittest

import wire
from pprof import Decoded, Profile
from questions import CPU, QUERIER, SAMPLES, read_tree
from server import Cluster, RpcError, Server, eventually, in_threads, now_ms, sql

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NEVER = -106751 * DAY * 1_000_000  # what the builder writes for "nothing yet"
QUICK = ["--builder-interval", "100ms", "--rollup-grace", "0"]
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
FOREIGN = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
N_PROFILES, N_SPANS, N_TRACES = 200, 30, 12

Sample = collections.namedtuple("Sample", "stack n ns span trace tier")
Pushed = collections.namedtuple("Pushed", "service pod ts samples")


def hex_of(n, digits):
    return "%0*x" % (digits, n) if n else ""


class Data:
    """Profiles of two services; their samples carry spans and traces, and sometimes a label that splits them."""

    def __init__(self):
        self.random = random.Random(4)
        self.end = now_ms() // 1000 * 1000
        self.start = self.end - 6 * HOUR
        self.spans = [self.random.getrandbits(64) | 1 for _ in range(N_SPANS)]
        self.traces = [self.random.getrandbits(128) | 1 for _ in range(N_TRACES)]
        self.profiles = []
        self.times = set()

    def sample(self, split):
        r = self.random
        stack = tuple(["main"] + ["f%d" % r.randint(0, 9) for _ in range(r.randint(1, 4))])
        n = r.randint(1, 1000)
        span = r.choice(self.spans) if r.random() < 0.6 else 0
        trace = r.choice(self.traces) if r.random() < 0.5 else 0
        return Sample(stack, n, n * 1_000_003 + r.randint(0, 99), span, trace, r.choice(["a", "b"]) if split else "")

    def make(self, start, end):
        r = self.random
        service = r.choice(["api", "api", "web"])
        # Some moments come twice: profiles of one service and time that are not one profile.
        if r.random() < 0.3 and self.times:
            ts = r.choice(sorted(t for t in self.times if start <= t <= end) or [start])
        else:
            ts = r.randint(start, end)
        split = r.random() < 0.4
        samples = [self.sample(split) for _ in range(r.randint(2, 12))]
        self.times.add(ts)
        return Pushed(service, "p-%d" % r.randint(0, 3), ts, samples)

    def push(self, server, n, start, end):
        made = [self.make(start, end) for _ in range(n)]
        self.profiles += made

        def some(first):
            for p in made[first::4]:
                profile = Profile(TYPES, time_ns=p.ts * 1_000_000, duration_ns=10_000_000_000)
                for s in p.samples:
                    labels = {"span_id": hex_of(s.span, 16), "trace_id": hex_of(s.trace, 32), "tier": s.tier}
                    profile.add(list(s.stack), [s.n, s.ns], {k: v for k, v in labels.items() if v})
                server.push(profile.encode(), {"__name__": "process_cpu", "service_name": p.service, "pod": p.pod})

        in_threads([lambda first=first: some(first) for first in range(4)])


def stacks_of(node, above=()):
    """{stack: self} of a tree."""
    out = collections.Counter()
    for child in node.children if node else []:
        path = above + (child.name,)
        if child.self_value:
            out[path] += child.self_value
        out.update(stacks_of(child, path))
    return out


class ProfilesAndSpans(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.url = cls.cluster.url()
        cls.data = Data()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    # ---- asking ----

    def request(self, service="api", **more):
        base = {"profileTypeID": CPU, "labelSelector": '{service_name="%s"}' % service}
        return {**base, "start": str(self.first), "end": str(self.last), **more}

    def stacks(self, method="SelectMergeStacktraces", **more):
        answer = self.server.connect(QUERIER + method, self.request(format="PROFILE_FORMAT_TREE", maxNodes="100000", **more))
        return dict(stacks_of(read_tree(base64.b64decode(answer.get("tree", "")))))

    def profiles(self, service="api"):
        return [p for p in self.data.profiles if p.service == service and self.first <= p.ts <= self.last]

    def expected(self, test, service="api", value="ns"):
        out = collections.Counter()
        for p in self.profiles(service):
            for s in p.samples:
                if test(p, s):
                    out[s.stack] += getattr(s, value)
        return dict(out)

    # ---- what has to hold in every state ----

    def check_spans(self):
        r = random.Random(1)
        for span in r.sample(self.data.spans, 4):
            text = hex_of(span, 16)
            expected = self.expected(lambda p, s: s.span == span)
            self.assertTrue(expected)
            self.assertEqual(self.stacks(spanSelector=[text]), expected)
            self.assertEqual(self.stacks(spanSelector=[text.upper()]), expected)
            self.assertEqual(self.stacks("SelectMergeSpanProfile", spanSelector=[text]), expected)
            self.assertEqual(self.own_total(spanIds=[text]), sum(expected.values()))
            self.assertEqual(self.own_total(spanIds=[str(span)]), sum(expected.values()))
            self.assertEqual(self.stacks(spanSelector=[text], profileTypeID=SAMPLES), self.expected(lambda p, s: s.span == span, value="n"))
        for trace in r.sample(self.data.traces, 2):
            text = hex_of(trace, 32)
            expected = self.expected(lambda p, s: s.trace == trace)
            self.assertEqual(self.stacks(traceIdSelector=[text]), expected)
            self.assertEqual(self.own_total(traceIds=[text.upper()]), sum(expected.values()))
            request = self.request(traceIdSelector=[text])
            body, _ = self.server.connect_proto(QUERIER + "SelectMergeProfile", self.proto(request))
            self.assertEqual(sum(values[0] for _, values, _ in Decoded(body).samples), sum(expected.values()))

    def own_total(self, **more):
        """What hearth.v1 counts, where ids are written in any way."""
        selection = {"profileType": CPU, "labelSelector": '{service_name="api"}', "start": str(self.first), "end": str(self.last), **more}
        return int(self.server.connect("hearth.v1.QueryService/Top", {"selection": selection}).get("total", 0))

    def proto(self, request):
        """SelectMergeProfileRequest: 1 type, 2 selector, 3 start, 4 end, 8 trace ids."""
        fields = [(1, request["profileTypeID"]), (2, request["labelSelector"]), (3, int(request["start"])), (4, int(request["end"]))]
        return wire.encode(fields + [(8, t) for t in request["traceIdSelector"]])

    def check_conservation(self):
        whole = sum(self.stacks().values())
        by_span = [sum(self.stacks(spanSelector=[hex_of(span, 16)]).values()) for span in self.data.spans]
        together = self.stacks(spanSelector=[hex_of(span, 16) for span in self.data.spans])
        rest = sum(self.expected(lambda p, s: s.span == 0).values())
        self.assertEqual(sum(together.values()), sum(by_span))
        self.assertEqual(sum(by_span) + rest, whole)
        self.assertEqual(self.stacks(spanSelector=["0" * 16]), {}, "no sample has span 0")
        self.assertEqual(self.stacks(traceIdSelector=["0" * 32]), {})

    def values(self, test=lambda p: True):
        """[(ts, value of the profile, profile)] of the selection."""
        return [(p.ts, sum(s.ns for s in p.samples), p) for p in self.profiles() if test(p)]

    def check_exemplars(self, group_by, step=600):
        request = self.request(step=step, exemplarType="EXEMPLAR_TYPE_INDIVIDUAL", groupBy=group_by)
        answer = self.server.connect(QUERIER + "SelectSeries", request)
        plain = self.server.connect(QUERIER + "SelectSeries", {**request, "exemplarType": "EXEMPLAR_TYPE_NONE"})
        ids, n = {}, 0
        for series, same in zip(answer["series"], plain["series"], strict=True):
            pod = series["labels"][0]["value"] if group_by else None
            self.assertEqual(series.get("labels"), same.get("labels"))
            for point, other in zip(series["points"], same["points"], strict=True):
                self.assertEqual((point["timestamp"], point["value"]), (other["timestamp"], other["value"]))
                self.assertNotIn("exemplars", other)
                t = int(point["timestamp"])
                begin = t - step * 1000 if t > self.first else t - step * 1000 - 1
                of_bucket = [p for p in self.data.profiles if p.service == "api" and p.pod == (pod or p.pod) and begin < p.ts <= t]
                value, ts, pushed = max((sum(s.ns for s in p.samples), p.ts, p) for p in of_bucket)
                (exemplar,) = point["exemplars"]
                self.assertEqual((int(exemplar["value"]), int(exemplar["timestamp"])), (value, ts))
                labels = {l["name"]: l["value"] for l in exemplar["labels"]}
                tiers = {s.tier for s in pushed.samples}
                self.assertEqual(labels.get("tier"), tiers.pop() if len(tiers) == 1 and "" not in tiers else None)
                self.assertEqual((labels["service_name"], labels["__profile_type__"]), ("api", CPU))
                self.assertEqual(labels.get("pod"), None if group_by else pushed.pod)
                self.assertNotIn("spanId", exemplar)
                ids[exemplar["profileId"]] = pushed
                n += 1
        self.assertEqual(len(ids), n, "a profile is in one point")
        self.assertGreater(n, 30)
        inside = {i: p for i, p in ids.items() if self.first <= p.ts <= self.last}
        for text, pushed in random.Random(2).sample(sorted(inside.items()), 5):
            expected = self.expected(lambda p, s: p is pushed)
            self.assertEqual(self.stacks(profileIdSelector=[text]), expected)
            span = next((s.span for s in pushed.samples if s.span), 0)
            if span:
                both = self.expected(lambda p, s: p is pushed and s.span == span)
                self.assertEqual(self.stacks(profileIdSelector=[text, FOREIGN], spanSelector=[hex_of(span, 16)]), both)
        some = sorted(inside)[:7]
        self.assertEqual(self.stacks(profileIdSelector=some), self.expected(lambda p, s: p in [inside[i] for i in some]))
        self.assertEqual(self.stacks(profileIdSelector=[FOREIGN]), {})
        self.assertEqual(self.stacks(service="web", profileIdSelector=some), {}, "an id is no way around the selector")
        return ids

    def check_call_site_exemplars(self):
        """With a call site, a profile is worth the stacks below it."""
        request = self.request(
            step=21_600, exemplarType="EXEMPLAR_TYPE_INDIVIDUAL", stackTraceSelector={"callSite": [{"name": "main"}, {"name": "f3"}]}
        )
        (series,) = self.server.connect(QUERIER + "SelectSeries", request)["series"]
        worth = lambda p: sum(s.ns for s in p.samples if s.stack[:2] == ("main", "f3"))
        found = [(int(p["exemplars"][0]["value"]), int(p["exemplars"][0]["timestamp"])) for p in series["points"]]
        of = [p for p in self.data.profiles if p.service == "api" and self.first - 21_600_000 <= p.ts <= self.first]
        later = [p for p in self.data.profiles if p.service == "api" and self.first < p.ts <= self.first + 21_600_000]
        buckets = [of] + ([later] if self.first + 21_600_000 <= self.last else [])
        self.assertEqual(found, [max((worth(p), p.ts) for p in b) for b in buckets if any(map(worth, b))])

    def check_span_exemplars(self, step=600):
        """The span that cost most in one row of each point; of equal ones the earlier."""
        request = self.request(step=step, exemplarType="EXEMPLAR_TYPE_SPAN", groupBy=["pod"])
        found = {}
        for series in self.server.connect(QUERIER + "SelectSeries", request)["series"]:
            for point in series["points"]:
                for e in point.get("exemplars", []):
                    found[series["labels"][0]["value"], int(point["timestamp"])] = (
                        int(e["value"]), int(e["timestamp"]), e["spanId"], e["profileId"], e.get("traceId", ""))
        expected = {}
        for p in self.data.profiles:
            slot = self.first + max(0, -(-(p.ts - self.first) // (step * 1000))) * step * 1000
            if p.service != "api" or p.ts < self.first - step * 1000 or slot > self.last:
                continue
            of_row = collections.Counter()
            for s in p.samples:
                if s.span:
                    of_row[(s.tier, s.span)] += s.ns
            for (_, span), value in of_row.items():
                one = (value, -p.ts, -span)
                expected[p.pod, slot] = max(expected.get((p.pod, slot), one), one)
        self.assertEqual({key: (v, -ts, -int(span, 16)) for key, (v, ts, span, _, _) in found.items()}, expected)
        self.assertGreater(len(found), 30)
        for value, _, span, profile, trace in random.Random(5).sample(sorted(v for v in found.values() if self.first <= v[1] <= self.last), 3):
            self.assertGreaterEqual(sum(self.stacks(profileIdSelector=[profile], spanSelector=[span]).values()), value)
            self.assertTrue(trace == "" or int(trace, 16) in self.data.traces)

    def check_heatmap(self, spans, step=600):
        kind = "SPAN" if spans else "INDIVIDUAL"
        request = self.request(
            step=step, queryType="HEATMAP_QUERY_TYPE_" + kind, exemplarType="EXEMPLAR_TYPE_" + kind, groupBy=["service_name"]
        )
        (series,) = self.server.connect(QUERIER + "SelectHeatmap", request)["series"]
        self.assertEqual(series["labels"], [{"name": "service_name", "value": "api"}])
        points = []  # (ts, value, span, profile)
        for ts, value, pushed in self.values():
            if not spans:
                points.append((ts, value, 0, pushed))
                continue
            of_row = collections.Counter()
            for s in pushed.samples:
                if s.span:
                    of_row[(s.tier, s.span)] += s.ns
            points += [(ts, v, span, pushed) for (_, span), v in of_row.items()]
        low, high = min(p[1] for p in points), max(p[1] for p in points)
        size = (high - low) / 20
        edges = [float(low + int(i * size)) for i in range(20)]
        slots = collections.defaultdict(lambda: [0] * 20)
        largest = {}
        for point in points:
            ts, value = point[:2]
            slot = self.first + max(0, -(-(ts - self.first) // (step * 1000))) * step * 1000
            cell = max(i for i in range(20) if edges[i] <= value)
            slots[slot][cell] += 1
            if (slot, cell) not in largest or value > largest[slot, cell][1]:
                largest[slot, cell] = point
        self.assertEqual({int(s["timestamp"]): s["counts"] for s in series["slots"]}, dict(slots))
        ids = set()
        for slot in series["slots"]:
            self.assertEqual(slot["yMin"], edges)
            mine = [largest[key] for key in sorted(largest) if key[0] == int(slot["timestamp"])]
            found = [(int(e["timestamp"]), int(e["value"]), e.get("spanId", "")) for e in slot["exemplars"]]
            self.assertEqual(found, [(ts, value, hex_of(span, 16)) for ts, value, span, _ in mine])
            ids.update((e["profileId"], e.get("spanId", ""), e.get("traceId", "")) for e in slot["exemplars"])
        for text, span, trace in random.Random(3).sample(sorted(ids), 3):
            if span:
                stacks = self.stacks(profileIdSelector=[text], spanSelector=[span])
                self.assertIn(sum(stacks.values()), {sum(self.expected(lambda p, s: p is q and hex_of(s.span, 16) == span).values()) for q in self.profiles()})
                self.assertTrue(trace == "" or (len(trace) == 32 and int(trace, 16) in self.data.traces))
        return ids

    def check(self, server):
        self.server = server
        self.check_spans()
        self.check_conservation()
        self.check_call_site_exemplars()
        self.check_span_exemplars()
        return self.check_exemplars(["pod"]), self.check_exemplars([]), self.check_heatmap(spans=False), self.check_heatmap(spans=True)

    def state(self, column, until_ns):
        rows = sql(self.url, "SELECT count(*) FILTER (WHERE %s < %d), count(*), (SELECT count(*) FROM hearth_data.profile_late) FROM hearth_data.roll_state" % (column, until_ns))
        return rows[0] == ["0", "2", "0"]

    def check_deletion(self, server):
        erase = {"labelSelector": '{service_name="api",pod="p-1"}', "start": str(self.first), "end": str(self.last - 2 * HOUR)}
        dry = server.connect("hearth.v1.AdminService/Erase", {**erase, "dryRun": True})
        server.connect("hearth.v1.AdminService/Erase", {**erase, "expectedSeries": dry["series"]})
        gone = lambda p: p.service == "api" and p.pod == "p-1" and self.first <= p.ts <= self.last - 2 * HOUR
        before = len(self.data.profiles)
        self.data.profiles = [p for p in self.data.profiles if not gone(p)]
        self.assertLess(len(self.data.profiles), before - 5)

    # ---- the states ----

    def test_answers_are_equal_in_every_state(self):
        data = self.data
        self.first, self.last = data.start + 10 * MINUTE + 17, data.end - 7 * MINUTE - 3
        raw = Server("--builder=false", database_url=self.url)
        data.push(raw, N_PROFILES, data.start, data.end)
        sql(
            self.url,
            "INSERT INTO hearth_data.roll_state SELECT service_id, %d, %d, %d, 1 FROM hearth_data.service"
            % ((data.end - HOUR) * 1_000_000, NEVER, NEVER),
        )
        data.push(raw, 50, data.start, data.end)
        self.assertGreater(int(sql(self.url, "SELECT count(*) FROM hearth_data.profile_late")[0][0]), 20)
        first = self.check(raw)
        self.check_bad_requests()
        raw.stop()

        server = Server(*QUICK, "--compaction=false", database_url=self.url)
        edge = now_ms() // (10 * MINUTE) * 10 * MINUTE * 1_000_000
        eventually(lambda: self.state("built_to", edge), 60, what="rolling up")
        self.assertEqual(self.check(server), first, "ids are the same")
        server.stop()

        server = Server(*QUICK, "--compact-after", "0", database_url=self.url)
        eventually(lambda: self.state("compacted_to", (now_ms() // HOUR - 1) * HOUR * 1_000_000), 60, what="compaction")
        self.assertEqual(self.check(server), first, "ids are the same")
        server.stop()

        raw = Server("--builder=false", database_url=self.url)
        self.check_deletion(raw)
        hidden = self.check(raw)
        raw.stop()
        sql(self.url, "UPDATE hearth_data.erasure SET requested_at = requested_at - interval '3 minutes'")
        server = Server(*QUICK, "--compact-after", "0", database_url=self.url)
        eventually(lambda: sql(self.url, "SELECT count(*) FROM hearth_data.tombstone") == [["0"]], 60, what="removal")
        self.assertEqual(self.check(server), hidden)
        server.stop()

    def check_bad_requests(self):
        heat = {"step": 1, "queryType": "HEATMAP_QUERY_TYPE_SPAN"}
        for method, more, code, text in (
            ("SelectMergeStacktraces", {"spanSelector": ["0" * 16], "traceIdSelector": ["0" * 32]}, "invalid_argument", "exclude"),
            ("SelectMergeStacktraces", {"spanSelector": ["0" * 15]}, "invalid_argument", "16 hex digits"),
            ("SelectMergeStacktraces", {"traceIdSelector": ["g" * 32]}, "invalid_argument", "32 hex digits"),
            ("SelectMergeStacktraces", {"profileIdSelector": [FOREIGN[1:]]}, "invalid_argument", "UUID"),
            ("SelectMergeProfile", {"profileIdSelector": [""]}, "invalid_argument", "UUID"),
            ("SelectMergeSpanProfile", {"spanSelector": ["0x" + "0" * 14]}, "invalid_argument", "16 hex digits"),
            ("SelectSeries", {"step": 1, "exemplarType": "EXEMPLAR_TYPE_SPAN", "stackTraceSelector": {"callSite": [{"name": "main"}]}}, "invalid_argument", "TopSpans"),
            ("SelectHeatmap", {"step": 1}, "invalid_argument", "query_type"),
            ("SelectHeatmap", {**heat, "exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL"}, "invalid_argument", "match"),
            ("SelectHeatmap", {**heat, "step": 0.0001}, "invalid_argument", "step"),
            ("SelectHeatmap", {**heat, "limit": "-1"}, "invalid_argument", "limit"),
            ("SelectHeatmap", {**heat, "end": str(self.first)}, "invalid_argument", "start"),
        ):
            with self.assertRaises(RpcError) as caught:
                self.server.connect(QUERIER + method, self.request(**more))
            self.assertEqual(caught.exception.code, code, (method, more))
            self.assertIn(text, str(caught.exception))


class EqualSpans(unittest.TestCase):
    def test_the_first_of_equal_profiles_is_the_exemplar_wherever_its_rows_are_stored(self):
        server = Server()
        self.addCleanup(server.stop)
        ts = now_ms() // 1000 * 1000 - MINUTE
        span = "00000000000000a1"

        def push(pod, at, value):
            profile = Profile(TYPES, time_ns=at * 1_000_000).add(["main"], [1, value], {"span_id": span})
            server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "api", "pod": pod})

        for pod in ("one", "two"):  # the order of series
            push(pod, ts - 30_000, 7)
        for pod in ("two", "one"):
            push(pod, ts, 1000)
        request = {
            "profileTypeID": CPU, "labelSelector": "{}", "start": str(ts - MINUTE), "end": str(ts), "step": 600,
            "queryType": "HEATMAP_QUERY_TYPE_SPAN", "exemplarType": "EXEMPLAR_TYPE_SPAN",
        }
        (series,) = server.connect(QUERIER + "SelectHeatmap", request)["series"]
        (largest,) = [e for slot in series["slots"] for e in slot["exemplars"] if int(e["value"]) == 1000]
        self.assertIn({"name": "pod", "value": "two"}, largest["labels"])


class PastRetention(unittest.TestCase):
    """Totals outlive the profiles that they were made of."""

    def test_values_of_dropped_profiles_have_no_exemplars_and_a_note_with_the_time(self):
        server = Server(*QUICK, "--retain-raw", "2h", "--retain-10m", "1d", "--retain-1h", "1d", "--retain-1d", "1d")
        self.addCleanup(server.stop)
        now = now_ms() // 1000 * 1000
        old, new = now - 6 * HOUR, now - 10 * MINUTE
        for at, value in ((old, 1000), (new, 7)):
            profile = Profile(TYPES, time_ns=at * 1_000_000).add(["main"], [1, value - 1], {"span_id": "00000000000000a1"})
            profile.add(["main"], [1, 1])
            server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "api"})
        # Until then the old profile is late, and what is late is not read beyond its time either.
        eventually(
            lambda: server.sql("SELECT count(*) FROM hearth_data.profile_late") == [["0"]]
            and server.sql("SELECT count(*) FROM hearth_data.roll_state WHERE built_to > %d" % ((old + HOUR) * 1_000_000))
            == [["1"]],
            60, what="totals of the old hour",
        )

        def ask(method, start, **more):
            request = {"profileTypeID": CPU, "labelSelector": "{}", "start": str(start), "end": str(now), "step": 1800, **more}
            status, headers, body = server.http(
                "POST", "/" + QUERIER + method, json.dumps(request), {"Content-Type": "application/json"}
            )
            self.assertEqual(status, 200, body)
            (series,) = json.loads(body)["series"]
            return series, headers.get("hearth-note", "")

        def assert_is_said(note):
            found = re.search(r"exemplars exist from (\S+)Z on; .*retain-raw", note)
            self.assertIsNotNone(found, note)
            from_ms = datetime.datetime.fromisoformat(found.group(1) + "+00:00").timestamp() * 1000
            self.assertEqual(from_ms % HOUR, 0)
            self.assertTrue(now - 3 * HOUR <= from_ms <= now - HOUR, note)

        individual = {"exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL"}
        series, note = ask("SelectSeries", old - HOUR, **individual)
        self.assertEqual([(p["value"], len(p.get("exemplars", []))) for p in series["points"]], [(1000, 0), (7, 1)])
        assert_is_said(note)
        series, note = ask("SelectSeries", old - HOUR)
        self.assertEqual(([p["value"] for p in series["points"]], note), ([1000, 7], ""))
        series, note = ask("SelectSeries", new - MINUTE, **individual, step=60)
        self.assertEqual(([len(p["exemplars"]) for p in series["points"]], note), ([1], ""))

        self.check_spans_past_retention(server, old - HOUR, now)
        heat = {"queryType": "HEATMAP_QUERY_TYPE_INDIVIDUAL"}
        series, note = ask("SelectHeatmap", old - HOUR, **heat, **individual)
        self.assertEqual([len(s.get("exemplars", [])) for s in series["slots"]], [0, 1])
        assert_is_said(note)
        self.assertEqual(ask("SelectHeatmap", old - HOUR, **heat)[1], "")
        self.assertEqual(ask("SelectHeatmap", new - MINUTE, **heat, **individual, step=60)[1], "")

    def check_spans_past_retention(self, server, start, end):
        """Spans and their whole are of the profiles that are left, which the answer says."""
        selection = {"profileType": CPU, "labelSelector": "{}", "start": str(start), "end": str(end)}
        for filters in ({}, {"stacks": {"functions": ["main"]}}):
            request = json.dumps({"selection": {**selection, **filters}})
            path = "/hearth.v1.TraceProfileService/TopSpans"
            _, headers, body = server.http("POST", path, request, {"Content-Type": "application/json"})
            answer = json.loads(body)
            self.assertEqual((answer["total"], answer["unlabelled"], [row["value"] for row in answer["rows"]]), ("7", "1", ["6"]))
            self.assertRegex(headers.get("hearth-note", ""), r"^profiles before \S+Z are gone \(retain-raw\); the range begins at \S+Z$")


if __name__ == "__main__":
    unittest.main()
