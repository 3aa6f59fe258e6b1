"""Which spans carry how much of a selection, and how many there are, against a model in Python: parts and whole to the unit.

Asked of the same data in every state: raw and late, of two servers, rolled up, compacted.
"""

import base64
import collections
import random
import unittest

from pprof import Profile
from questions import CPU, QUERIER, read_tree
from server import Cluster, RpcError, Server, eventually, in_threads, now_ms, sql
from test_profiles_and_spans import HOUR, MINUTE, NEVER, QUICK, TYPES, Data, hex_of, stacks_of

SPANS = "hearth.v1.TraceProfileService/"
Sample = collections.namedtuple("Sample", "stack ns span trace root name endpoint tier")
KEYS = {"SPAN": "span", "TRACE": "trace", "LOCAL_ROOT": "root", "ENDPOINT": "endpoint", "SPAN_NAME": "name"}
FIELDS = {"SPAN": "spanId", "TRACE": "traceId", "LOCAL_ROOT": "localRootId", "ENDPOINT": "endpoint", "SPAN_NAME": "name"}
DIGITS = {"span": 16, "root": 16, "trace": 32}


class Spans(Data):
    """As there, with local roots, endpoints and names: for half of the spans always the same, for the others any."""

    def sample(self, split):
        s = super().sample(split)
        r = self.random
        number = self.spans.index(s.span) if s.span else -1
        fixed = number >= 0 and number % 2 == 0
        root = self.spans[number % 7] if fixed else r.choice(self.spans[:7] + [0] * 5)
        trace = self.traces[number % 12] if fixed and number % 4 == 0 else s.trace
        name = "work %d" % (number % 5 if fixed else r.randint(0, 4)) if r.random() < 0.7 else ""
        endpoint = "GET /%d" % (number % 3) if fixed else r.choice(["", "GET /0", "GET /é"])
        return Sample(s.stack, 0 if r.random() < 0.05 else s.ns, s.span, trace, root, name, endpoint, s.tier)

    def push(self, servers, n, start, end):
        made = [self.make(start, end) for _ in range(n)]
        self.profiles += made

        def some(first):
            for p in made[first::4]:
                profile = Profile(TYPES, time_ns=p.ts * 1_000_000, duration_ns=10_000_000_000)
                for s in p.samples:
                    labels = {
                        "span_id": hex_of(s.span, 16), "trace_id": hex_of(s.trace, 32), "local root span id": str(s.root or ""),
                        "span_name": s.name, "trace endpoint": s.endpoint, "tier": s.tier,
                    }
                    profile.add(list(s.stack), [1, s.ns], {k: v for k, v in labels.items() if v})
                labels = {"__name__": "process_cpu", "service_name": p.service, "pod": p.pod}
                servers[first % len(servers)].push(profile.encode(), labels)

        in_threads([lambda first=first: some(first) for first in range(4)])


class Question:
    """A selection, as a request and as a test of pushed profiles and samples."""

    def __init__(self, data, r):
        self.service = r.choice(["api", "web", ""])
        self.pods = r.sample(["p-0", "p-1", "p-2", "p-3"], r.randint(1, 4)) if r.random() < 0.5 else None
        self.functions = ["f%d" % f for f in r.sample(range(10), r.randint(1, 3))] if r.random() < 0.6 else []
        self.without = ["f%d" % r.randint(0, 9)] if r.random() < 0.2 else []
        self.spans = r.sample(data.spans, 5) if r.random() < 0.2 else []
        self.first = r.randint(data.start - MINUTE, data.end - HOUR)
        self.last = r.randint(self.first, data.end)

    def selection(self):
        matchers = ['service_name="%s"' % self.service] if self.service else []
        matchers += ['pod=~"%s"' % "|".join(self.pods)] if self.pods else []
        return {
            "profileType": CPU, "labelSelector": "{%s}" % ",".join(matchers), "start": str(self.first), "end": str(self.last),
            "stacks": {"functions": self.functions, "without": self.without}, "spanIds": [hex_of(s, 16) for s in self.spans],
        }

    def has(self, p):
        return p.service == (self.service or p.service) and p.pod in (self.pods or [p.pod])

    def counts(self, s):
        stacks = not self.functions or set(self.functions) & set(s.stack)
        return s.ns > 0 and stacks and not set(self.without) & set(s.stack) and (not self.spans or s.span in self.spans)

    def samples(self, data, first=None, last=None):
        first, last = self.first if first is None else first, self.last if last is None else last
        chosen = [p for p in data.profiles if self.has(p) and first <= p.ts <= last]
        return [(p, s) for p in chosen for s in p.samples if self.counts(s)]


def only(values):
    """The one that all say who say any."""
    said = {v for v in values if v}
    return said.pop() if len(said) == 1 else ""


def text_of(attr, value):
    return hex_of(value, DIGITS[attr]) if attr in DIGITS else value


def expected_rows(samples, by):
    """What the answer has, the largest first."""
    of = collections.defaultdict(list)
    for p, s in samples:
        key = getattr(s, KEYS[by])
        if key:
            of[key].append((p, s))
    rows = []
    for key, mine in of.items():
        profiles = {id(p): p.ts for p, _ in mine}
        row = {
            "value": sum(s.ns for _, s in mine), "profileCount": len(profiles),
            "firstNs": min(profiles.values()) * 1_000_000, "lastNs": max(profiles.values()) * 1_000_000,
            "spanCount": len({s.span for _, s in mine if s.span}), "service": only(p.service for p, _ in mine),
        }
        if by in ("SPAN", "LOCAL_ROOT"):
            for kind in ("TRACE", "LOCAL_ROOT", "SPAN_NAME", "ENDPOINT"):
                row[FIELDS[kind]] = text_of(KEYS[kind], only(getattr(s, KEYS[kind]) for _, s in mine))
        row[FIELDS[by]] = text_of(KEYS[by], key)
        rows.append((-row["value"], key.encode() if isinstance(key, str) else key, {k: v for k, v in row.items() if v}))
    return [row for _, _, row in sorted(rows, key=lambda r: r[:2])]


def plain(row):
    texts = set(FIELDS.values()) | {"service"}
    return {k: v if k in texts else int(v) for k, v in row.items()}


class SpanLists(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.url = cls.cluster.url()
        cls.data = Spans()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def ask(self, method, request):
        return self.server.connect(SPANS + method, request)

    def check_rows(self, question, r):
        samples = question.samples(self.data)
        whole = sum(s.ns for _, s in samples)
        for by in KEYS:
            answer = self.ask("TopSpans", {"selection": question.selection(), "by": "SPANS_BY_" + by, "limit": "10000"})
            expected = expected_rows(samples, by)
            self.assertEqual([plain(row) for row in answer.get("rows", [])], expected, (by, vars(question)))
            self.assertEqual((int(answer.get("rowCount", 0)), int(answer.get("total", 0))), (len(expected), whole))
            labelled = sum(row["value"] for row in expected)
            self.assertEqual(labelled + int(answer.get("unlabelled", 0)), whole)
        expected = expected_rows(samples, "SPAN")
        limit, offset = r.choice([1, 7, 10_000]), r.choice([0, 3, max(0, len(expected) - 2)])
        listed = self.ask("ListSpans", {"selection": question.selection(), "limit": str(limit), "offset": str(offset)})
        self.assertEqual([plain(row) for row in listed.get("rows", [])], expected[offset : offset + limit])
        merged = self.server.connect("hearth.v1.QueryService/Merge", {"selection": question.selection(), "format": "PROFILE_FORMAT_FLAMEGRAPH"})
        self.assertEqual(int(merged.get("flamegraph", {}).get("total", 0)), whole)
        self.assertEqual(int(listed.get("total", 0)), whole)
        if not (question.functions or question.without or question.spans) and question.first < question.last:
            self.check_heatmap(question, samples)

    def check_heatmap(self, question, samples):
        """The heatmap of spans has each span once for each part of a profile: as often as the rows say, but for split profiles."""
        selection = question.selection()
        request = {k: selection[k] for k in ("labelSelector", "start", "end")}
        request.update(profileTypeID=CPU, step=question.last - question.first, queryType="HEATMAP_QUERY_TYPE_SPAN", groupBy=["service_name"])
        heatmap = self.server.connect(QUERIER + "SelectHeatmap", request)
        counts = [n for series in heatmap.get("series", []) for slot in series["slots"] for n in slot["counts"]]
        self.assertEqual(sum(map(int, counts)), len({(id(p), s.tier, s.span) for p, s in samples if s.span}))

    def check_counts(self, question, r):
        step = r.choice([300, 1800.5, 7200, 86_400])
        group_by = r.choice([[], ["pod"], ["service_name", "pod"]])
        answer = self.ask("SpanCounts", {"selection": question.selection(), "step": step, "groupBy": group_by})
        cells, spans = collections.defaultdict(lambda: [set(), 0]), collections.defaultdict(set)
        ms = int(step * 1000)
        for p, s in question.samples(self.data, question.first - ms + 1):
            bucket = max(0, -(-(p.ts - question.first) // ms))
            if s.span and bucket <= (question.last - question.first) // ms:
                labels = tuple((n, getattr(p, n.removesuffix("_name"))) for n in sorted(group_by or ["service_name"]))
                cells[labels, question.first + bucket * ms][0].add(s.span)
                cells[labels, question.first + bucket * ms][1] += s.ns
                spans[labels].add(s.span)
        found, order = {}, []
        for series in answer.get("series", []):
            labels = tuple((l["name"], l["value"]) for l in series["labels"])
            order.append((labels, int(series["spanCount"])))
            times = [int(point["timestamp"]) for point in series["points"]]
            self.assertEqual(times, sorted(times))
            found.update({(labels, int(q["timestamp"])): (int(q["spanCount"]), int(q["value"])) for q in series["points"]})
        self.assertEqual(found, {k: (len(v[0]), v[1]) for k, v in cells.items()})
        self.assertEqual(order, sorted(((k, len(v)) for k, v in spans.items()), key=lambda x: (-x[1], x[0])))
        if order:
            one = self.ask("SpanCounts", {"selection": question.selection(), "step": step, "groupBy": group_by, "limit": "1"})
            self.assertEqual(one["series"], answer["series"][:1])
            self.check_bar(question, answer["series"][0], ms)

    def check_bar(self, question, series, ms):
        """ListSpans of a bar has its spans."""
        point = series["points"][-1]
        selection = question.selection()
        matchers = ['%s="%s"' % (l["name"], l["value"]) for l in series["labels"]] + [selection["labelSelector"][1:-1]]
        selection["labelSelector"] = "{%s}" % ",".join(m for m in matchers if m)
        selection.update(start=str(int(point["timestamp"]) - ms + 1), end=point["timestamp"])
        listed = self.ask("ListSpans", {"selection": selection, "limit": "10000"})
        self.assertEqual((listed["rowCount"], sum(int(row["value"]) for row in listed["rows"])), (point["spanCount"], int(point["value"])))

    def tree(self, service, method="SelectMergeStacktraces", **more):
        data = self.data
        request = {
            "profileTypeID": CPU, "labelSelector": '{service_name="%s"}' % service, "start": str(data.start), "end": str(data.end),
            "format": "PROFILE_FORMAT_TREE", "maxNodes": "100000", **more,
        }
        return stacks_of(read_tree(base64.b64decode(self.server.connect(QUERIER + method, request).get("tree", ""))))

    def check_nodes(self, service):
        """In every node of the tree, those of the spans and the rest are the whole."""
        data = self.data
        selection = {"profileType": CPU, "labelSelector": '{service_name="%s"}' % service, "start": str(data.start), "end": str(data.end)}
        listed = self.ask("ListSpans", {"selection": selection, "limit": "10000"})
        of_spans = collections.Counter()
        for row in listed["rows"]:
            tree = self.tree(service, "SelectMergeSpanProfile", spanSelector=[row["spanId"]])
            self.assertEqual(sum(tree.values()), int(row["value"]))
            of_spans.update(tree)
        together = self.tree(service, "SelectMergeSpanProfile", spanSelector=[row["spanId"] for row in listed["rows"]])
        self.assertEqual(of_spans, together)
        rest = collections.Counter()
        for p in data.profiles:
            for s in p.samples:
                if p.service == service and s.span == 0 and s.ns:
                    rest[s.stack] += s.ns
        self.assertEqual(sum(rest.values()), int(listed["unlabelled"]))
        self.assertEqual(of_spans + rest, self.tree(service))

    def check(self, server, seed):
        self.server = server
        print("seed", seed)
        r = random.Random(seed)
        for _ in range(12):
            question = Question(self.data, r)
            self.check_rows(question, r)
            self.check_counts(question, r)
        self.check_nodes(r.choice(["api", "web"]))

    def state(self, column, until_ns):
        rows = sql(self.url, "SELECT count(*) FILTER (WHERE %s < %d), count(*), (SELECT count(*) FROM hearth_data.profile_late) FROM hearth_data.roll_state" % (column, until_ns))
        return rows[0] == ["0", "2", "0"]

    def test_parts_and_whole_are_those_of_the_model_in_every_state(self):
        data, seed = self.data, random.randrange(2**32)
        raw = [Server("--builder=false", database_url=self.url) for _ in range(2)]
        data.push(raw[:1], 120, data.start, data.end)
        sql(
            self.url,
            "INSERT INTO hearth_data.roll_state SELECT service_id, %d, %d, %d, 1 FROM hearth_data.service"
            % ((data.end - HOUR) * 1_000_000, NEVER, NEVER),
        )
        data.push(raw, 60, data.start, data.end)
        self.assertGreater(int(sql(self.url, "SELECT count(*) FROM hearth_data.profile_late")[0][0]), 20)
        for server in raw:
            self.check(server, seed)
            seed += 1
        self.check_refusals()
        raw[0].stop()
        raw[1].stop()

        server = Server(*QUICK, "--compaction=false", database_url=self.url)
        edge = now_ms() // (10 * MINUTE) * 10 * MINUTE * 1_000_000
        eventually(lambda: self.state("built_to", edge), 60, what="rolling up")
        self.check(server, seed)
        server.stop()

        server = Server(*QUICK, "--compact-after", "0", "--max-points", "10", database_url=self.url)
        eventually(lambda: self.state("compacted_to", (now_ms() // HOUR - 1) * HOUR * 1_000_000), 60, what="compaction")
        self.server = server
        selection = {"profileType": CPU, "labelSelector": "{}", "start": str(data.start), "end": str(data.end)}
        with self.assertRaises(RpcError) as caught:
            self.ask("SpanCounts", {"selection": selection, "step": 60})
        self.assertIn("max-points (10)", str(caught.exception))
        self.check_nodes("api")
        for seed in range(seed, seed + 6):
            self.check_rows(Question(data, random.Random(seed)), random.Random(seed))
        server.stop()

    def check_refusals(self):
        data = self.data
        selection = {"profileType": CPU, "labelSelector": "{}", "start": str(data.start), "end": str(data.end)}
        for method, request, part in (
            ("TopSpans", {}, "selection is missing"),
            ("TopSpans", {"selection": selection, "by": 9}, "by 9 is not known"),
            ("TopSpans", {"selection": selection, "limit": "-1"}, "limit -1 is negative"),
            ("ListSpans", {"selection": selection, "offset": "-2"}, "offset -2 is negative"),
            ("ListSpans", {"selection": {**selection, "stacks": {"regex": "("}}}, "regex"),
            ("SpanCounts", {"selection": selection}, "step must be"),
            ("SpanCounts", {"selection": selection, "step": 60, "limit": "-1"}, "limit -1 is negative"),
        ):
            with self.assertRaises(RpcError) as caught:
                self.ask(method, request)
            self.assertEqual(caught.exception.code, "invalid_argument", (method, request))
            self.assertIn(part, str(caught.exception))


class Moments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.url = cls.cluster.url()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def ask(self, method, request):
        return self.server.connect(SPANS + method, request)

    def test_bars_and_their_lists_are_equal_to_the_nanosecond(self):
        """A bar has whole milliseconds, so its list does; nothing is in two lists, and the sum of all is that of all bars."""
        server = self.server = Server("--builder=false", database_url=self.url)
        self.addCleanup(server.stop)
        t, step, ms = now_ms() // 1000 * 1000 - MINUTE, 10, 1_000_000
        edges = [at * step * ms + d for at in (-1, 0, 1, 2, 3) for d in (-1, 0, 1, ms // 2, ms - 1, ms, ms + 1)]
        for i, at in enumerate(edges):
            profile = Profile(TYPES, time_ns=t * ms + at)
            profile.add(["main"], [1, 1 << i], {"span_id": hex_of(1 + i, 16)})
            server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "edges"})

        def of(first, last):
            """Spans and values of the edges in [t + first, t + last] in nanoseconds."""
            return sorted((hex_of(1 + i, 16), 1 << i) for i, at in enumerate(edges) if first <= at <= last)

        def rows(method, start, end):
            selection = {"profileType": CPU, "labelSelector": '{service_name="edges"}', "start": str(t + start), "end": str(t + end)}
            answer = self.ask(method, {"selection": selection})
            found = sorted((row["spanId"], int(row["value"])) for row in answer.get("rows", []))
            self.assertEqual(sum(value for _, value in found), int(answer.get("total", 0)))
            return found

        selection = {"profileType": CPU, "labelSelector": '{service_name="edges"}', "start": str(t), "end": str(t + 2 * step)}
        (series,) = self.ask("SpanCounts", {"selection": selection, "step": step / 1000})["series"]
        listed = []
        for bar in series["points"]:
            end = int(bar["timestamp"]) - t
            expected = of((end - step + 1) * ms, (end + 1) * ms - 1)
            self.assertEqual((int(bar["spanCount"]), int(bar["value"])), (len(expected), sum(value for _, value in expected)), bar)
            self.assertEqual(rows("ListSpans", end - step + 1, end), expected)
            listed += expected
        self.assertEqual([int(bar["timestamp"]) - t for bar in series["points"]], [0, step, 2 * step])
        self.assertEqual(listed, of((1 - step) * ms, (2 * step + 1) * ms - 1))
        self.assertEqual(int(series["spanCount"]), len(listed))
        self.assertEqual(rows("TopSpans", 0, step), of(0, step * ms))

    def test_parts_and_whole_are_of_one_snapshot_while_profiles_are_pushed(self):
        """Every sample has a span and a stack that is new, so none is ever unlabelled, whatever a question meets."""
        server = self.server = Server("--builder=false", database_url=self.url)
        self.addCleanup(server.stop)
        now, done, totals, pushed = now_ms(), [], [], []

        def push():
            for i in range(20_000):
                if i >= 40 and len(set(totals)) > 3:
                    break
                pushed.append(i)
                profile = Profile(TYPES, time_ns=(now - i) * 1_000_000)
                for k in range(20):
                    profile.add(["main", "new %d %d" % (i, k)], [1, 1 + k], {"span_id": hex_of(1 + 50 * i + k, 16)})
                server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "busy %d" % (i % 3)})
            done.append(True)

        def ask():
            selection = {"profileType": CPU, "labelSelector": '{service_name=~"busy.*"}', "start": str(now - MINUTE), "end": str(now)}
            while True:
                last = bool(done)
                for filters in ({}, {"stacks": {"functions": ["main"]}}, {"stacks": {"without": ["none"]}}):
                    answer = self.ask("TopSpans", {"selection": {**selection, **filters}, "limit": "100000"})
                    self.assertEqual(sum(int(row["value"]) for row in answer.get("rows", [])), int(answer.get("total", 0)))
                    self.assertEqual(int(answer.get("unlabelled", 0)), 0)
                    totals.append(int(answer.get("total", 0)))
                if last:
                    return

        in_threads([push, ask])
        self.assertEqual(totals[-3:], [len(pushed) * 210] * 3)

    def test_a_long_first_bar_takes_no_more_memory_with_a_filter(self):
        server = self.server = Server("--builder=false", "--max-query-memory-bytes", "1m", database_url=self.url)
        self.addCleanup(server.stop)
        now = now_ms()

        def push(first):
            for i in range(first, 40, 4):
                profile = Profile(TYPES, time_ns=(now - HOUR + i) * 1_000_000)
                for k in range(2000):
                    profile.add(["main"], [1, 1], {"span_id": hex_of(1 + k, 16)})
                server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "before"})

        in_threads([lambda first=first: push(first) for first in range(4)])
        selection = {"profileType": CPU, "labelSelector": '{service_name="before"}', "start": str(now), "end": str(now)}
        for filters in ({}, {"stacks": {"functions": ["main"]}}):
            (series,) = self.ask("SpanCounts", {"selection": {**selection, **filters}, "step": 7200})["series"]
            self.assertEqual((series["spanCount"], series["points"][0]["value"]), ("2000", "80000"))

    def test_the_error_of_a_query_beyond_its_memory_names_the_limit(self):
        server = self.server = Server("--builder=false", "--max-query-memory-bytes", "1m", database_url=self.url)
        self.addCleanup(server.stop)
        now = now_ms()
        profile = Profile(TYPES, time_ns=now * 1_000_000)
        for k in range(10_000):
            profile.add(["main"], [1, 1], {"span_id": hex_of(1 + k, 16)})
        server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "many"})
        selection = {"profileType": CPU, "labelSelector": '{service_name="many"}', "start": str(now), "end": str(now)}
        for method, more in (("TopSpans", {}), ("TopSpans", {"by": "SPANS_BY_TRACE"}), ("SpanCounts", {"step": 1})):
            try:
                self.ask(method, {"selection": selection, **more})
                self.assertEqual(more.get("by"), "SPANS_BY_TRACE", "there are none")
            except RpcError as error:
                self.assertEqual(error.code, "resource_exhausted")
                self.assertIn("memory", str(error))


if __name__ == "__main__":
    unittest.main()
