"""From traces to profiles: which profiles spans and traces have and what these cost, against a model in Python.

Asked of the same data in every state: raw, of a second server with the index packed, compacted.
"""

import base64
import collections
import json
import random
import unittest

import otlp
import wire
from agents import Instance, span as agents_span
from pprof import Decoded, Profile
from questions import CPU, QUERIER, SAMPLES, read_tree
from server import Cluster, RpcError, Server, eventually, in_threads, now_ms, sql
from test_profiles_and_spans import HOUR, MINUTE, QUICK, TYPES, hex_of, stacks_of

RPC = "hearth.v1.TraceProfileService/"
MS = 1_000_000
N_PROFILES, N_SPANS, N_TRACES = 60, 24, 6
SERVER_OPTIONS = ["--multitenancy", "--otlp-traces", "--max-lookup-ids", "50"]
NOBODY = 0x1234567890ABCDEF

Sample = collections.namedtuple("Sample", "stack n ns span root trace")
Pushed = collections.namedtuple("Pushed", "service pod ts duration samples")


def signed(n):
    return n - (1 << 64) if n >= 1 << 63 else n


class Data:
    """Spans run over several profiles of one service, half of them in a trace; every third is its own local root."""

    def __init__(self):
        r = self.random = random.Random(6)
        self.end = now_ms() // 1000 * 1000
        self.start = self.end - 4 * HOUR
        self.spans = [r.getrandbits(64) | 1 << 63 if i % 2 else r.getrandbits(63) | 1 for i in range(N_SPANS)]
        self.traces = [r.getrandbits(128) | 1 for _ in range(N_TRACES)]
        self.traces[2] = self.traces[2] >> 64 << 64  # a trace's low 64 bits may be 0, as a whole it is not
        # A local root that carries no samples of its own.
        self.quiet_root = r.getrandbits(64) | 1
        self.profiles = []

    def ids(self, i):
        root = self.quiet_root if i == 1 else self.spans[i // 3 * 3]
        return self.spans[i], root, self.traces[i // 4] if i % 8 < 4 else 0

    def make(self):
        r = self.random
        number = r.randint(0, N_SPANS - 1)
        service = "cart" if number < 16 else "pay"
        samples = []
        for k in range(r.randint(3, 12)):
            i = number - number % 3 + k % 3
            span, root, trace = self.ids(i) if r.random() < 0.7 else (0, 0, 0)
            stack = tuple(["main"] + ["f%d" % r.randint(0, 7) for _ in range(r.randint(1, 4))])
            n = r.randint(0, 50)
            samples.append(Sample(stack, n, n * 1_000_003 + r.randint(0, 99), span, root, trace))
        return Pushed(service, "p-%d" % r.randint(0, 1), r.randint(self.start, self.end - 6 * MINUTE), 10_000, samples)

    def labels(self, s, k):
        """In the spellings of several profilers."""
        if not s.span:
            return {}
        trace = {"trace_id": hex_of(s.trace, 32)} if s.trace else {}
        if k % 3 == 0:
            return {"span_id": hex_of(s.span, 16), "local_root_span_id": hex_of(s.root, 16), **trace}
        if k % 3 == 1:
            return {"span id": str(s.span), "local root span id": str(s.root), **trace}
        return {"span id": signed(s.span), "local root span id": signed(s.root), **trace}

    def push(self, server, tenant):
        self.profiles = [self.make() for _ in range(N_PROFILES)]

        def some(first):
            for p in self.profiles[first::4]:
                profile = Profile(TYPES, time_ns=p.ts * MS, duration_ns=p.duration * MS)
                for k, s in enumerate(p.samples):
                    profile.add(list(s.stack), [s.n, s.ns], self.labels(s, k))
                labels = {"__name__": "process_cpu", "service_name": p.service, "pod": p.pod}
                server.push(profile.encode(), labels, metadata=tenant)

        in_threads([lambda first=first: some(first) for first in range(4)])

    def matching(self, test):
        return [(p, s) for p in self.profiles for s in p.samples if (s.n or s.ns) and test(s)]


def types_of(found):
    return {t["profileType"]: (int(t.get("total", 0)), int(t["profileCount"])) for t in found.get("types", [])}


class TraceProfiles(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.url = cls.cluster.url()
        cls.raw = cls.server = Server("--builder=false", *SERVER_OPTIONS, database_url=cls.url)
        cls.tenant = "shop"
        cls.data = Data()
        cls.data.push(cls.raw, [("x-scope-orgid", cls.tenant)])

    @classmethod
    def tearDownClass(cls):
        cls.raw.stop()
        cls.cluster.stop()

    # ---- asking ----

    def ask(self, method, request, tenant=None):
        return self.server.connect(method, request, {"X-Scope-OrgID": tenant or self.tenant})

    def spans(self, *ids, options=None, tenant=None, **known):
        request = {"spans": [{"spanId": i, **known} for i in ids], "options": options or {}}
        return self.ask(RPC + "LookupSpan", request, tenant)["results"]

    def traces(self, *ids, options=None, tenant=None, **known):
        request = {"traces": [{"traceId": i, **known} for i in ids], "options": options or {}}
        return self.ask(RPC + "LookupTrace", request, tenant)["results"]

    def refused(self, code, call, *arguments, **options):
        with self.assertRaises(RpcError) as caught:
            call(*arguments, **options)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return str(caught.exception)

    def item(self, **request):
        answer = self.ask(RPC + "SpanProfile", {"profileType": CPU, **request})
        self.assertEqual(answer["unit"], "nanoseconds")
        return answer["profiles"][0]

    def stacks(self, **request):
        item = self.item(format="SPAN_PROFILE_FORMAT_TREE", maxNodes="100000", **request)
        stacks = dict(stacks_of(read_tree(base64.b64decode(item["tree"]))))
        self.assertEqual(int(item["total"]), sum(stacks.values()))
        return stacks, item.get("spanIds", [])

    def merged(self, **more):
        request = {"profileTypeID": CPU, "labelSelector": "{}", "start": str(self.data.start), "end": str(self.data.end),
                   "format": "PROFILE_FORMAT_TREE", "maxNodes": "100000", **more}
        answer = self.ask(QUERIER + "SelectMergeStacktraces", request)
        return dict(stacks_of(read_tree(base64.b64decode(answer.get("tree", "")))))

    # ---- what is expected ----

    def check_found(self, found, test):
        """An exact answer against the model."""
        matching = self.data.matching(test)
        profiles = {id(p): p for p, _ in matching}
        with_cpu = {id(p) for p, s in matching if s.ns}
        with_n = {id(p) for p, s in matching if s.n}
        self.assertEqual(found["certainty"], "CERTAINTY_EXACT")
        self.assertEqual(types_of(found), {CPU: (sum(s.ns for _, s in matching), len(with_cpu)), SAMPLES: (sum(s.n for _, s in matching), len(with_n))})
        self.assertEqual(int(found["profileCount"]), len(profiles))
        seen = sorted((int(p["timeNs"]), p["service"], int(p["durationNs"])) for p in found["profiles"])
        self.assertEqual(seen, sorted((p.ts * MS, p.service, p.duration * MS) for p in profiles.values()))
        self.assertEqual(found["spanIds"], sorted({hex_of(s.span, 16) for _, s in matching}))
        self.assertEqual(found.get("traceIds", []), sorted({hex_of(s.trace, 32) for _, s in matching if s.trace}))
        for one in found["spans"]:
            mine = [s for _, s in matching if hex_of(s.span, 16) == one["spanId"]]
            self.assertEqual({t: v for t, (v, _) in types_of(one).items()}, {CPU: sum(s.ns for s in mine), SAMPLES: sum(s.n for s in mine)})
        # To ask further.
        further = {"labelSelector": found["labelSelector"], "start": found["start"], "end": found["end"], "profileTypeID": CPU}
        self.assertEqual(sum(self.merged(spanSelector=found["spanIds"], **further).values()), sum(s.ns for _, s in matching))
        ids = [p["profileId"] for p in found["profiles"]]
        self.assertEqual(sum(self.merged(profileIdSelector=ids, spanSelector=found["spanIds"]).values()), sum(s.ns for _, s in matching))
        return ids

    def expected(self, test):
        out = collections.Counter()
        for _, s in self.data.matching(test):
            if s.ns:
                out[s.stack] += s.ns
        return dict(out)

    # ---- what has to hold in every state ----

    def check_lookups(self):
        data = self.data
        known = [s for s in data.spans if data.matching(lambda s_, s=s: s_.span == s)]
        self.assertGreater(len(known), 15)
        ids = []
        for span, found in zip(known, self.spans(*[hex_of(s, 16) for s in known])):
            self.assertEqual(found["id"], hex_of(span, 16))
            ids.append(self.check_found(found, lambda s: s.span == span))
        for text in (hex_of(known[0], 16).upper(), str(known[0])):
            self.check_found(self.spans(text)[0], lambda s: s.span == known[0])
        (found,) = self.spans(hex_of(data.quiet_root, 16))
        self.check_found(found, lambda s: s.root == data.quiet_root)
        self.assertIn("local root", found["searched"])
        for trace in data.traces[::2]:
            (found,) = self.traces(hex_of(trace, 32))
            self.check_found(found, lambda s: s.trace == trace)
        raw = self.server.call(RPC + "LookupSpan", [(1, [(1, hex_of(known[0], 16))])], [("x-scope-orgid", self.tenant)])
        by_grpc = wire.decode(raw[1][0])
        self.assertEqual((by_grpc[1], by_grpc[2]), ([hex_of(known[0], 16).encode()], [1]), "over gRPC")
        (found,) = self.spans(hex_of(known[0], 16), options={"profileTypes": [SAMPLES], "maxProfiles": "1"})
        self.assertEqual(list(types_of(found)), [SAMPLES])
        self.assertEqual(len(found["profiles"]), 1)
        return ids

    def check_nobody(self):
        unknown = hex_of(NOBODY, 16)
        said = self.refused("not_found", self.spans, unknown)
        self.assertRegex(said, "no sample carries the id, and its time is unknown")
        self.assertIn("searched: samples of span " + unknown, said)
        self.assertIn("local root", self.refused("not_found", self.spans, unknown, options={"exactOnly": True}))
        self.assertIn("samples of trace", self.refused("not_found", self.traces, hex_of(NOBODY, 32)))
        span = hex_of(self.data.spans[0], 16)
        self.refused("not_found", self.spans, span, tenant="other")
        self.refused("not_found", self.ask, RPC + "SpanProfile", {"profileType": CPU, "spanIds": [span]}, "other")
        one, other = self.spans(unknown, span)
        self.assertNotIn("certainty", one)
        self.assertTrue(one["searched"] and one["reason"])
        self.assertEqual(other["certainty"], "CERTAINTY_EXACT")
        self.assertRegex(self.refused("not_found", self.item, spanIds=[unknown]), "samples of 1 spans")

    def check_exact_beats_window(self):
        p, s = self.data.matching(lambda s: s.span and s.ns)[0]
        around = {"service": p.service, "startNs": str(p.ts * MS), "endNs": str(p.ts * MS + 5), "tags": [{"key": "pod", "value": p.pod}]}
        (found,) = self.spans(hex_of(s.span, 16), **around)
        self.check_found(found, lambda other: other.span == s.span)
        window = {"window": {"padMs": "0"}}
        (found,) = self.spans(hex_of(NOBODY, 16), options=window, **around)
        self.assertEqual(found["certainty"], "CERTAINTY_WINDOW")
        same = [q for q in self.data.profiles if (q.service, q.pod) == (p.service, p.pod) and q.ts <= p.ts <= q.ts + q.duration]
        self.assertEqual(int(found["profileCount"]), len(same))
        self.assertEqual(types_of(found)[CPU][0], sum(s.ns for q in same for s in q.samples))
        self.assertNotIn("spanIds", found)
        (found,) = self.spans("", options=window, **around)
        self.assertEqual(found["certainty"], "CERTAINTY_WINDOW")
        self.refused("not_found", self.spans, hex_of(NOBODY, 16), options={"exactOnly": True}, **around)

    def check_profiles(self):
        data = self.data
        span, other = data.spans[3], data.spans[17]
        text = hex_of(span, 16)
        self.assertEqual(self.stacks(spanIds=[text]), (self.expected(lambda s: s.span == span), [text]))
        self.assertEqual(self.stacks(spanIds=[str(span)])[0], self.expected(lambda s: s.span == span))
        self.assertEqual(self.stacks(localRootIds=[text])[0], self.expected(lambda s: s.root == span))
        trace = data.traces[2]
        self.assertEqual(self.stacks(traceIds=[hex_of(trace, 32)])[0], self.expected(lambda s: s.trace == trace))
        together, ids = self.stacks(spanIds=[text], localRootIds=[hex_of(other, 16)], traceIds=[hex_of(trace, 32)])
        union = lambda s: s.span == span or s.root == other or s.trace == trace
        self.assertEqual(together, self.expected(union))
        self.assertEqual(ids, sorted({hex_of(s.span, 16) for _, s in data.matching(union) if s.ns}))
        self.assertEqual(self.stacks(spanIds=[text], children=True)[0], self.expected(lambda s: s.span == span or s.root == span))
        # Other formats; a selector, a range and stacks.
        total = sum(self.expected(lambda s: s.span == span).values())
        self.assertEqual(int(self.item(spanIds=[text])["flamegraph"]["total"]), total)
        pprof = Decoded(base64.b64decode(self.item(spanIds=[text], format="SPAN_PROFILE_FORMAT_PPROF")["pprof"]))
        self.assertEqual(sum(values[0] for _, values, _ in pprof.samples), total)
        top = self.item(spanIds=[text], format="SPAN_PROFILE_FORMAT_TOP", maxNodes="100")
        self.assertEqual((int(top["total"]), sum(int(row.get("self", 0)) for row in top["top"])), (total, total))
        middle = (data.start + data.end) // 2
        first = sum(s.ns for p in data.profiles for s in p.samples if s.span == span and p.ts <= middle)
        cut = self.ask(RPC + "SpanProfile", {"profileType": CPU, "spanIds": [text], "start": str(data.start), "end": str(middle)}) if first else None
        self.assertEqual(int(cut["profiles"][0]["total"]) if cut else 0, first)
        self.refused("not_found", self.item, spanIds=[text], labelSelector='{service_name="nobody"}')
        f1 = sum(v for k, v in self.expected(lambda s: s.span == span).items() if "f1" in k)
        self.assertEqual(int(self.item(spanIds=[text], stacks={"functions": ["f1"]}).get("total", 0)), f1)

    def check_each(self):
        data = self.data
        request = {"profileType": CPU, "each": True, "spanIds": [hex_of(data.spans[3], 16), hex_of(NOBODY, 16)],
                   "localRootIds": [hex_of(data.spans[3], 16)], "traceIds": [hex_of(data.traces[0], 32)]}
        items = self.ask(RPC + "SpanProfile", request)["profiles"]
        self.assertEqual([i["id"] for i in items], request["spanIds"] + request["localRootIds"] + request["traceIds"])
        tests = [lambda s: s.span == data.spans[3], lambda s: False, lambda s: s.root == data.spans[3], lambda s: s.trace == data.traces[0]]
        self.assertEqual([int(i.get("total", 0)) for i in items], [sum(self.expected(t).values()) for t in tests])

    def check_conservation(self):
        """Every node of the whole is the sum of its nodes in all spans and of the samples without one."""
        parts = collections.Counter(self.expected(lambda s: s.span == 0))
        for span in self.data.spans:
            if self.expected(lambda s: s.span == span):
                parts.update(self.stacks(spanIds=[hex_of(span, 16)])[0])
        self.assertEqual(dict(parts), self.merged())
        heat = self.ask(QUERIER + "SelectHeatmap", {
            "profileTypeID": CPU, "labelSelector": "{}", "start": str(self.data.start), "end": str(self.data.end), "step": 60,
            "queryType": "HEATMAP_QUERY_TYPE_SPAN", "exemplarType": "EXEMPLAR_TYPE_SPAN"})
        n_spots = len({(id(p), s.span) for p, s in self.data.matching(lambda s: s.span and s.ns)})
        self.assertEqual(sum(sum(slot["counts"]) for series in heat["series"] for slot in series["slots"]), n_spots)

    def check(self, server):
        type(self).server = server
        ids = self.check_lookups()
        self.check_nobody()
        self.check_exact_beats_window()
        self.check_profiles()
        self.check_each()
        self.check_conservation()
        return ids

    # ---- the states ----

    def test_spans_and_traces_have_the_same_profiles_in_every_state(self):
        first = self.check(self.raw)
        built = Server(*QUICK, "--compact-after", "0", *SERVER_OPTIONS, database_url=self.url)
        try:
            hour = (now_ms() // HOUR - 1) * HOUR * MS
            compacted = "SELECT count(*) FROM hearth_data.roll_state WHERE compacted_to >= %d" % hour
            eventually(lambda: int(sql(self.url, compacted)[0][0]) >= 2, 20, what="compaction")
            eventually(lambda: sql(self.url, "SELECT count(*) FROM hearth_data.span_fresh") == [["0"]], 60, what="the index")
            self.assertEqual(self.check(built), first, "ids are the same")
        finally:
            built.stop()
            type(self).server = self.raw

    def test_spans_acknowledged_by_a_killed_server_are_found_before_and_after_another_indexed_them(self):
        tenant = "killed"
        now = (self.data.end - MINUTE) * MS
        doomed = Server("--builder=false", *SERVER_OPTIONS, database_url=self.url)
        ids = [otlp.new_span().hex() for _ in range(10)]
        try:
            for i, span in enumerate(ids):
                self.push_one("front", [("work", 100 + i, {"span_id": span})], now + i * MS, tenant, server=doomed)
        finally:
            doomed.kill9()
        found = lambda: [self.profile_of(tenant, spanIds=[span]) for span in ids]
        expected = [{"work": 100 + i} for i in range(len(ids))]
        self.assertEqual(found(), expected)
        built = Server(*QUICK, "--compaction=false", *SERVER_OPTIONS, database_url=self.url)
        try:
            type(self).server = built
            eventually(lambda: sql(self.url, "SELECT count(*) FROM hearth_data.span_fresh") == [["0"]], 60, what="the index")
            self.assertEqual(found(), expected)
        finally:
            built.stop()
            type(self).server = self.raw

    def test_impossible_queries_are_refused(self):
        span = hex_of(self.data.spans[0], 16)
        refused = lambda method, **request: self.refused("invalid_argument", self.ask, RPC + method, request)
        self.assertIn("spans are required", refused("LookupSpan"))
        self.assertIn("traces are required", refused("LookupTrace"))
        self.assertIn("neither an id nor a service", refused("LookupSpan", spans=[{}]))
        self.assertIn("start and end are required", refused("LookupSpan", spans=[{"service": "cart"}]))
        self.assertIn('"0" is that of none', refused("LookupSpan", spans=[{"spanId": "0"}]))
        self.assertIn("ends before it begins", refused("LookupSpan", spans=[{"spanId": span, "startNs": "5", "endNs": "4"}]))
        self.assertIn("max-lookup-ids allows 50", refused("LookupSpan", spans=[{"spanId": span}] * 51))
        self.assertIn("pad_ms", refused("LookupSpan", spans=[{"spanId": span}], options={"window": {"padMs": "-1"}}))
        self.assertIn("max_profiles -1", refused("LookupSpan", spans=[{"spanId": span}], options={"maxProfiles": "-1"}))
        self.assertIn("required", refused("SpanProfile", profileType=CPU))
        self.assertIn("required", refused("SpanProfile", profileType=CPU, each=True))
        self.assertIn("max-lookup-ids allows 50", refused("SpanProfile", profileType=CPU, spanIds=[span] * 51))
        self.assertIn("is that of none", refused("SpanProfile", profileType=CPU, traceIds=["0"]))

    # ---- with what is stored of spans ----

    def push_one(self, service, samples, at_ns, tenant, duration_ms=10_000, server=None, **labels):
        """samples: [(function, ns, sample labels)]"""
        profile = Profile(TYPES, time_ns=at_ns, duration_ns=duration_ms * MS)
        for function, ns, ids in samples:
            profile.add(["main", function], [1, ns], ids)
        labels = {"__name__": "process_cpu", "service_name": service, **labels}
        (server or self.raw).push(profile.encode(), labels, metadata=[("x-scope-orgid", tenant)])

    def export(self, tenant, *resources):
        answer, _ = self.raw.grpc_bytes(otlp.EXPORT, otlp.request(*resources), [("x-scope-orgid", tenant)])
        self.assertEqual(wire.decode(answer), {})

    def profile_of(self, tenant, **request):
        answer = self.ask(RPC + "SpanProfile", {"profileType": CPU, "format": "SPAN_PROFILE_FORMAT_TOP", **request}, tenant)
        return {row["name"]: int(row["self"]) for row in answer["profiles"][0]["top"] if int(row.get("self", 0))}

    def test_stored_spans_show_their_children_and_their_times(self):
        tenant = "stored"
        now = (self.data.end - MINUTE) * MS
        trace, root, child, far, leaf, quiet = otlp.new_trace(), *(otlp.new_span() for _ in range(5))
        stored = lambda id, name, parent=b"", at=0, tags=None: otlp.span(trace, id, name, now + at, now + at + 5 * MS, parent=parent, tags=tags)
        self.export(tenant, ({"service.name": "front", "pod": "front-1"}, [stored(root, "GET /"), stored(child, "call", root)]),
                    ({"service.name": "back"}, [stored(far, "serve", child), stored(quiet, "idle", far, 90_000 * MS)]))
        self.push_one("front", [("in root", 100, {"span_id": root.hex()}), ("in child", 20, {"span_id": child.hex()}),
                                ("elsewhere", 7, {"span_id": otlp.new_span().hex()})], now - 3, tenant, pod="front-1")
        # A span that nobody stored, below one that is.
        self.push_one("back", [("in far", 3000, {"span_id": far.hex()}), ("in leaf", 400, {"span_id": leaf.hex(), "local_root_span_id": far.hex()})], now, tenant)
        profile = lambda **request: self.profile_of(tenant, **request)
        self.assertEqual(profile(spanIds=[root.hex()]), {"in root": 100})
        everything = {"in root": 100, "in child": 20, "in far": 3000, "in leaf": 400}
        self.assertEqual(profile(spanIds=[root.hex()], children=True), everything)
        self.assertEqual(profile(spanIds=[child.hex()], children=True), {"in child": 20, "in far": 3000, "in leaf": 400})
        self.assertEqual(profile(traceIds=[trace.hex()]), everything)
        self.assertEqual(profile(traceIds=[trace.hex()], labelSelector='{service_name="back"}'), {"in far": 3000, "in leaf": 400})
        ask = lambda method, **request: self.ask(RPC + method, request, tenant)["results"][0]
        found = ask("LookupTrace", traces=[{"traceId": trace.hex()}])
        self.assertEqual((found["certainty"], types_of(found)[CPU]), ("CERTAINTY_EXACT", (3520, 2)))
        self.assertEqual(found["labelSelector"], '{service_name=~"back|front"}')
        by_id = {s["spanId"]: s for s in found["spans"]}
        self.assertEqual(found["spans"][0]["spanId"], far.hex())
        self.assertEqual(set(by_id), {s.hex() for s in (root, child, far, leaf)})
        self.assertNotIn("span", by_id[leaf.hex()])
        span = by_id[child.hex()]["span"]
        self.assertEqual((span["name"], span["parentId"], span["traceId"], span["service"]), ("call", root.hex(), trace.hex(), "front"))
        self.assertEqual((span["kind"], span["startNs"], span["endNs"]), ("entry", str(now), str(now + 5 * MS)))
        # The whole trace as it is stored, by start: who is between others may have no samples.
        self.assertEqual([s["name"] for s in found["stored"]], [name for _, name in sorted([(root, "GET /"), (child, "call"), (far, "serve")])] + ["idle"])
        self.assertEqual(found["stored"][-1]["parentId"], far.hex())
        # No sample carries it: when it ran is known, and of which service.
        found = ask("LookupSpan", spans=[{"spanId": quiet.hex()}], options={"window": {"padMs": "80000"}})
        self.assertEqual((found["certainty"], types_of(found)[CPU]), ("CERTAINTY_WINDOW", (3400, 1)))
        self.assertEqual((found["labelSelector"], found["spans"][0]["span"]["name"]), ('{service_name="back"}', "idle"))
        self.assertEqual([s["spanId"] for s in found["stored"]], [quiet.hex()])
        query = '{${__tags}, not!="${__span.spanId} ${__span.traceId} ${__trace.traceId} ${__span.name}"}'
        found = ask("LookupSpan", spans=[{"spanId": str(int(quiet.hex(), 16))}], options={"window": {"padMs": "80000", "query": query}})
        known = "%s %s %s idle" % (quiet.hex(), trace.hex(), trace.hex())
        self.assertEqual(found["labelSelector"], '{service_name="back", not!="%s"}' % known)
        said = self.refused("not_found", ask, "LookupSpan", spans=[{"spanId": quiet.hex()}])
        self.assertIn("no profile was being taken in the window", said)
        self.ask("hearth.v1.AdminService/SetLimits", {"changes": [{"name": "max-lookup-spans", "value": "5"}]}, tenant)
        both = self.ask(RPC + "LookupTrace", {"traces": [{"traceId": trace.hex()}, {"traceId": trace.hex()}]}, tenant)["results"]
        self.assertEqual([len(one["stored"]) for one in both], [4, 1], "all answers of a request share the limit")

    def test_a_span_found_as_local_root_reports_how_it_was_stored(self):
        tenant, now = "rooted", (self.data.end - MINUTE) * MS
        trace, root, leaf = otlp.new_trace(), otlp.new_span(), otlp.new_span()
        self.export(tenant, ({"service.name": "front"}, [otlp.span(trace, root, "GET /", now, now + 5 * MS)]))
        self.push_one("front", [("leaf", 5, {"span_id": leaf.hex(), "local_root_span_id": root.hex()})], now, tenant)
        found = self.ask(RPC + "LookupSpan", {"spans": [{"spanId": root.hex()}]}, tenant)["results"][0]
        self.assertEqual((found["certainty"], found["spanIds"]), ("CERTAINTY_EXACT", [leaf.hex()]))
        self.assertEqual([(s["spanId"], s["name"]) for s in found["stored"]], [(root.hex(), "GET /")])

    def test_rows_of_spans_and_local_roots_show_how_they_were_stored(self):
        tenant, now = "named", (self.data.end - MINUTE) * MS
        trace, again, root, child, nobody = otlp.new_trace(), otlp.new_trace(), *(otlp.new_span() for _ in range(3))
        self.export(tenant, ({"service.name": "front"}, [otlp.span(trace, root, "GET /", now, now + 9 * MS)]))
        self.export(tenant, ({"service.name": "back"}, [otlp.span(trace, child, "serve", now + MS, now + 5 * MS, parent=root)]))
        # Ids of spans are of their trace: whoever has the same in another one, later, is somebody else.
        self.export(tenant, ({"service.name": "other"}, [otlp.span(again, child, "other", now + 2 * MS, now + 3 * MS)]))
        ids = lambda span: {"span_id": span.hex(), "local_root_span_id": root.hex(), "trace_id": trace.hex(), "span_name": "as sampled"}
        self.push_one("front", [("x", 300, ids(root)), ("x", 20, ids(child)), ("x", 1, ids(nobody))], now, tenant)

        def rows(method, tenant=tenant, **request):
            selection = {"profileType": CPU, "labelSelector": "{}", "start": str(self.data.start), "end": str(self.data.end)}
            request = {"selection": selection, **request}
            status, headers, body = self.raw.http("POST", "/" + RPC + method, json.dumps(request), {"Content-Type": "application/json", "X-Scope-OrgID": tenant})
            self.assertEqual(status, 200, body)
            stored = [row.get("stored") for row in json.loads(body)["rows"]]
            return [s and (s["name"], s["service"], (int(s["endNs"]) - int(s["startNs"])) // MS) for s in stored], headers.get("hearth-note", "")

        both = [("GET /", "front", 9), ("serve", "back", 4), None]
        self.assertEqual(rows("TopSpans"), (both, ""))
        self.assertEqual(rows("ListSpans"), (both, ""))
        self.assertEqual(rows("ListSpans", limit="1", offset="1"), ([both[1]], ""))
        self.assertEqual(rows("TopSpans", by="SPANS_BY_LOCAL_ROOT"), (both[:1], ""))
        for by in ("TRACE", "SPAN_NAME"):
            self.assertEqual(rows("TopSpans", by="SPANS_BY_" + by), ([None], ""))
        self.push_one("front", [("x", 300, ids(root))], now, "strangers")
        self.assertEqual(rows("TopSpans", "strangers"), ([None], ""), "spans are their tenant's")
        self.ask("hearth.v1.AdminService/SetLimits", {"changes": [{"name": "max-lookup-spans", "value": "1"}]}, tenant)
        cut, note = rows("TopSpans")
        self.assertEqual((cut[0], len(cut)), (None, 3), "the latest are read")
        self.assertIn("max-lookup-spans", note)

    def test_a_profile_in_several_windows_of_a_trace_counts_once(self):
        """Spans of one service with a pod and without one ask for the same profiles."""
        tenant, now = "windows", (self.data.end - MINUTE) * MS
        pod = "front-1-" + "x" * 300  # so long that a text would be cut if it were for a message
        trace = otlp.new_trace()
        spans = lambda *names: [otlp.span(trace, name=name, start=now, end=now + 5 * MS) for name in names]
        self.export(tenant, ({"service.name": "front", "pod": pod}, spans("a")), ({"service.name": "front"}, spans("b")),
                    ({"service.name": "front", "pod": "front-2"}, spans("c")))
        # Nothing is found yet, and the error says all that was searched.
        said = self.refused("not_found", self.ask, RPC + "LookupTrace", {"traces": [{"traceId": trace.hex()}]}, tenant)
        self.assertEqual((said.count("profiles of {"), said.count("span-window-lookback: 1h")), (3, 3), said)
        self.assertGreater(len(said), 480)
        self.assertIn('service_name="front"', said)
        # One is split over two series, of which both selectors take both.
        self.push_one("front", [("x", 100, {"tier": "gold"}), ("y", 20, {})], now, tenant, pod=pod)
        self.push_one("front", [("x", 3000, {})], now + 1, tenant, pod="front-2")
        self.push_one("front", [("x", 40000, {})], now + 2, tenant, pod="front-3")
        found = self.ask(RPC + "LookupTrace", {"traces": [{"traceId": trace.hex()}]}, tenant)["results"][0]
        self.assertEqual((found["certainty"], found["searched"].count("profiles of {")), ("CERTAINTY_WINDOW", 3))
        self.assertEqual((found["searched"].count("span-window-lookback: 1h"), found["searched"].count(pod)), (3, 1))
        self.assertEqual(types_of(found), {CPU: (43120, 3), SAMPLES: (4, 3)})
        self.assertEqual((found["profileCount"], len({p["profileId"] for p in found["profiles"]}), len(found["profiles"])), ("3", 3, 3))

    def test_the_searched_range_is_complete_in_an_answer_of_any_length(self):
        tenant, now = "long", (self.data.end - MINUTE) * MS
        trace = otlp.new_trace()
        pods = ["pod-%02d-" % k + "x" * 300 for k in range(15)]
        self.export(tenant, *(
            ({"service.name": "front", "pod": pod}, [otlp.span(trace, start=now, end=now + 5 * MS)]) for pod in pods))
        self.push_one("front", [("x", 100, {})], now, tenant, pod=pods[7])
        found = self.ask(RPC + "LookupTrace", {"traces": [{"traceId": trace.hex()}]}, tenant)["results"][0]
        self.assertEqual((found["certainty"], found.get("reason", "")), ("CERTAINTY_WINDOW", ""))
        self.assertGreater(len(found["searched"]), 5000)
        self.assertEqual([found["searched"].count('pod="%s"' % pod) for pod in pods], [1] * 15)
        self.assertEqual(found["searched"].count("span-window-lookback: 1h"), 15)

    def test_a_tracer_may_name_the_id_of_its_samples(self):
        tenant, now = "renamed", (self.data.end - MINUTE) * MS
        trace, span = otlp.new_trace(), otlp.new_span()
        tagged = otlp.span(trace, span, "work", now, now + MS, tags={"pyroscope.profile.id": "00000000000000ab"})
        self.export(tenant, ({"service.name": "front"}, [tagged]))
        self.push_one("front", [("mine", 5, {"profile_id": "00000000000000ab"})], now, tenant)
        found = self.ask(RPC + "LookupSpan", {"spans": [{"spanId": span.hex()}]}, tenant)["results"][0]
        self.assertEqual((found["certainty"], types_of(found)[CPU], found["spanIds"]), ("CERTAINTY_EXACT", (5, 1), ["00000000000000ab"]))
        found = self.ask(RPC + "LookupTrace", {"traces": [{"traceId": trace.hex()}]}, tenant)["results"][0]
        self.assertEqual((found["certainty"], types_of(found)[CPU]), ("CERTAINTY_EXACT", (5, 1)))

    def test_segments_of_skywalking_lead_to_profiles_by_their_time(self):
        now = self.data.end - MINUTE
        agent = Instance(self.raw, "agents", "agents-1", tenant="agents")
        agent.send_segments(agent.segment("trace.17.1", "segment.17.2", [agents_span(0, "/pay", now, now + 50), agents_span(1, "SQL", now + 5, now + 9, 0)]))
        self.push_one("agents", [("pay", 9, {})], now * MS, "agents")
        for found in (self.spans("segment.17.2", tenant="agents")[0], self.traces("trace.17.1", tenant="agents")[0]):
            self.assertEqual((found["certainty"], types_of(found)[CPU]), ("CERTAINTY_WINDOW", (9, 1)))
            self.assertEqual(found["labelSelector"], '{service_name="agents"}')
        span = self.spans("segment.17.2", tenant="agents")[0]["spans"][0]
        self.assertEqual((span["spanId"], span["span"]["name"], span["span"]["traceId"]), ("segment.17.2/0", "/pay", "trace.17.1"))

    def test_a_query_may_name_stored_spans_by_id_and_name(self):
        tenant, now = "names", self.data.end - MINUTE
        agent = Instance(self.raw, tenant, "names-1", tenant=tenant)
        agent.send_segments(agent.segment("trace.18.1", "segment.18.2", [agents_span(0, "/pay", now, now + 50), agents_span(1, "SQL", now + 5, now + 9, 0)]))
        self.push_one(tenant, [("pay", 9, {})], now * MS, tenant, op="/pay", span="segment.18.2/0", trace="trace.18.1")
        query = '{op="${__span.name}", span="${__span.spanId}", trace="${__trace.traceId}"}'
        for found in (*self.spans("segment.18.2", tenant=tenant, options={"window": {"query": query}}),
                      *self.traces("trace.18.1", tenant=tenant, options={"window": {"query": query}})):
            self.assertEqual((found["certainty"], types_of(found)[CPU]), ("CERTAINTY_WINDOW", (9, 1)))
        # What is not stored has the id that was asked for, and the service that the caller says.
        known = {"tenant": tenant, "service": tenant, "startNs": str(now * MS)}
        for asked, id in (("00000000000000AB", "00000000000000ab"), ("18446744073709551615", "f" * 16), ("request 1", "request 1")):
            (found,) = self.spans(asked, options={"window": {"query": '{${__tags}, x!="${__span.spanId}"}'}}, **known)
            self.assertEqual(found["labelSelector"], '{service_name="names", x!="%s"}' % id)
        (found,) = self.traces("AB", options={"window": {"query": '{${__tags}, x!="${__span.traceId}"}'}}, **known)
        self.assertEqual(found["labelSelector"], '{service_name="names", x!="%s"}' % ("0" * 30 + "ab"))
        for variable, what in (("span.name", "name"), ("span.traceId", "trace")):
            options = {"window": {"query": '{x="${__%s}"}' % variable}}
            said = self.refused("not_found", self.spans, "ab", options=options, **known)
            self.assertIn("the %s of the span is not known, which the query names" % what, said)
        said = self.refused("invalid_argument", self.spans, "ab", options={"window": {"query": '{x="${__span.duration}"}'}}, **known)
        self.assertIn("unknown variable ${__span.duration} in the query, at offset 4", said)

    def test_a_missing_start_or_end_is_taken_from_the_stored_span_or_the_other_time(self):
        tenant, ns = "halves", (self.data.end - 10 * MINUTE) * MS
        span = otlp.new_span()
        self.export(tenant, ({"service.name": tenant}, [otlp.span(otlp.new_trace(), span, "work", ns, ns + 8 * MS)]))
        for i in (-1000, 0, 2, 4, 6, 8, 1000):
            self.push_one(tenant, [("main", 1, {})], ns + i * MS, tenant, duration_ms=0)

        def count(id, **known):
            (found,) = self.spans(id, tenant=tenant, service=tenant, options={"window": {"padMs": "0"}}, **{k: str(v) for k, v in known.items()})
            return found["profileCount"]

        half = ns + 4 * MS
        self.assertEqual(count(span.hex()), "5")
        self.assertEqual((count(span.hex(), startNs=half), count(span.hex(), endNs=half)), ("3", "3"))
        self.assertEqual((count(span.hex(), startNs=ns + 1000 * MS), count(span.hex(), endNs=ns - 1000 * MS)), ("1", "1"))
        self.assertEqual((count("ab", startNs=half), count("ab", endNs=half)), ("1", "1"))

    def test_profiles_beyond_the_limit_of_a_request_are_cut_with_a_note(self):
        tenant, now = "many", (self.data.end - 2 * MINUTE) * MS
        self.ask("hearth.v1.AdminService/SetLimits", {"changes": [{"name": "max-lookup-profiles", "value": "3"}]}, tenant)
        for i in range(5):
            self.push_one("many", [("work", 10 ** i, {"span_id": "00000000000000cd"})], now + i * MS, tenant)
        (found,) = self.spans("cd".zfill(16), tenant=tenant)
        self.assertEqual(types_of(found)[CPU], (11100, 3), "the latest")
        # The index knows traces by their low halves. Where those of another leave no room for its own, that is said.
        for i, trace in enumerate((1 << 64 | 0xAB, 2 << 64 | 0xAB, 2 << 64 | 0xAB, 2 << 64 | 0xAB)):
            self.push_one("halves", [("work", 1, {"span_id": "00000000000000ac", "trace_id": hex_of(trace, 32)})], now + i * MS, tenant)
        said = self.refused("not_found", self.traces, hex_of(1 << 64 | 0xAB, 32), tenant=tenant)
        self.assertRegex(said, "no sample carries the id.*; of the profiles that may carry it the latest were read.*max-lookup-profiles allows; searched")
        # What counts is profiles, not the ids that each carries.
        ids = ["%016x" % (0xE000 + i) for i in range(4)]
        for i in range(2):
            self.push_one("ids", [("work", 1, {"span_id": one, "local_root_span_id": ids[0]}) for one in ids], now + i * MS, tenant)
        self.assertEqual([types_of(found)[CPU] for found in self.spans(*ids, tenant=tenant)], [(2, 2)] * 4)
        self.assertEqual(self.profile_of(tenant, spanIds=ids), {"work": 8})
        selection = {"profileType": CPU, "labelSelector": "{}", "start": str(self.data.start), "end": str(self.data.end), "spanIds": ["cd".zfill(16)]}
        top = self.ask("hearth.v1.QueryService/Top", {"selection": selection}, tenant)
        self.assertEqual(top["total"], "11111", "a range is read whole")
        status, headers, _ = self.raw.http("POST", "/" + RPC + "SpanProfile", '{"profileType":"%s","spanIds":["00000000000000cd"]}' % CPU,
                                           {"Content-Type": "application/json", "X-Scope-OrgID": tenant})
        self.assertEqual(status, 200)
        self.assertIn("max-lookup-profiles", headers["hearth-note"])

    def test_no_query_looks_further_back_than_the_limit(self):
        tenant, span = "near", "00000000000000fe"
        self.push_one("near", [("old", 5, {"span_id": span})], self.data.start * MS, tenant)
        self.push_one("near", [("new", 60, {"span_id": span})], (self.data.end - MINUTE) * MS, tenant)
        self.assertEqual(types_of(self.spans(span, tenant=tenant)[0])[CPU], (65, 2))
        self.ask("hearth.v1.AdminService/SetLimits", {"changes": [{"name": "max-query-lookback", "value": "1h"}]}, tenant)
        self.assertEqual(types_of(self.spans(span, tenant=tenant)[0])[CPU], (60, 1))
        self.assertEqual(self.profile_of(tenant, spanIds=[span]), {"new": 60})
        said = self.refused("not_found", self.spans, hex_of(NOBODY, 16), options={"exactOnly": True}, tenant=tenant)
        self.assertIn("max-query-lookback", said)

    def test_a_refusal_for_expired_samples_names_the_start_of_retention(self):
        tenant, span = "short", "00000000000000ef"
        self.push_one("short", [("work", 5, {"span_id": span})], self.data.start * MS, tenant)
        self.assertEqual(types_of(self.spans(span, tenant=tenant)[0])[CPU], (5, 1))
        self.ask("hearth.v1.AdminService/SetRetention", {"name": "retain-raw", "durationMs": str(HOUR)}, tenant)
        kept = "samples are kept from 20.*Z on .retain-raw."
        said = self.refused("not_found", self.spans, span, options={"exactOnly": True}, tenant=tenant)
        self.assertRegex(said, "the profiles with its samples are gone .retain-raw.; searched: .*" + kept)
        self.assertRegex(self.refused("not_found", self.ask, RPC + "SpanProfile", {"profileType": CPU, "spanIds": [span]}, tenant), kept)
        selection = {"profileType": CPU, "labelSelector": "{}", "start": str(self.data.start - HOUR), "end": str(self.data.end), "spanIds": [span]}
        for method, request in (("hearth.v1.QueryService/Top", {"selection": selection}),
                                (QUERIER + "SelectHeatmap", {**selection, "profileTypeID": CPU, "step": 60, "queryType": "HEATMAP_QUERY_TYPE_SPAN"})):
            request = {k: v for k, v in request.items() if not (method.endswith("Heatmap") and k in ("profileType", "spanIds"))}
            status, headers, body = self.raw.http("POST", "/" + method, json.dumps(request), {"Content-Type": "application/json", "X-Scope-OrgID": tenant})
            self.assertEqual(status, 200, body)
            self.assertRegex(headers["hearth-note"], "profiles before 20.*Z are gone .retain-raw.")

    def test_ids_that_are_texts_are_found_by_their_text(self):
        profile = Profile(TYPES, time_ns=(self.data.end - MINUTE) * MS, duration_ns=MS)
        profile.add(["main", "texts"], [3, 30], {"profile_id": "request 17/ä", "trace_id": "no hexadecimal"})
        self.raw.push(profile.encode(), {"__name__": "process_cpu", "service_name": "texts"}, metadata=[("x-scope-orgid", "texts")])
        (found,) = self.spans("request 17/ä", tenant="texts")
        self.assertEqual(types_of(found), {CPU: (30, 1), SAMPLES: (3, 1)})
        answer = self.ask(RPC + "SpanProfile", {"profileType": CPU, "traceIds": ["no hexadecimal"]}, "texts")
        self.assertEqual(answer["profiles"][0]["total"], "30")
        self.assertEqual(answer["profiles"][0]["spanIds"], found["spanIds"])


if __name__ == "__main__":
    unittest.main()
