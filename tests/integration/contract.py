"""The contract of the public API as data: for every method its messages, what is refused and how, and exact answers about
the small profiles below. test_contract.py asks each question as JSON, as protobuf and over gRPC.

Times are relative to T, set when the profiles are pushed; "T+1000" in a request or an answer is that many milliseconds later.
"""

from pprof import Profile

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
MINUTE = 60_000
SPAN_A, SPAN_B, TRACE_A = "00000000000000aa", "00000000000000bb", "000000000000000000000000000000cc"


# ---- what is pushed before ----


def shop(ns):
    p = Profile(TYPES, time_ns=ns, duration_ns=10_000_000_000)
    p.add(["main", "handle", "query"], [3, 30]).add(["main", "handle"], [1, 10]).add(["main", "gc"], [2, 20])
    return p.add(["main", "fib", "fib", "fib"], [4, 40]).add(["main", "fib"], [1, 10])


def before(ns):
    return Profile(TYPES, time_ns=ns).add(["main", "a"], [1, 10]).add(["main", "b"], [1, 5])


def after(ns):
    return Profile(TYPES, time_ns=ns).add(["main", "a"], [1, 4]).add(["main", "c", "d"], [1, 3]).add(["main"], [1, 1])


def spans(ns):
    p = Profile(TYPES, time_ns=ns)
    p.add(["main", "x"], [1, 7], {"span_id": SPAN_A, "trace_id": TRACE_A})
    p.add(["main", "x"], [1, 2], {"span_id": SPAN_B, "trace_id": TRACE_A})
    return p.add(["main", "y"], [1, 5])


def of_value(value):
    return lambda ns: Profile(TYPES, time_ns=ns).add(["main"], [1, value])


# (labels besides __name__, milliseconds after T, profile)
PUSHED = [
    ({"service_name": "shop", "pod": "a"}, 0, shop),
    ({"service_name": "before"}, 0, before),
    ({"service_name": "after"}, 0, after),
    ({"service_name": "spans"}, 0, spans),
] + [
    ({"service_name": "heat", "zone": zone}, at, of_value(value))
    for zone, at, value in (("east", 0, 100), ("east", 500, 120), ("east", 1000, 200), ("west", 1001, 300), ("west", 3000, 101))
]


# ---- how a row of the table reads ----


class Case:
    """One question. code: the Connect code that it is refused with, None when it is answered; part: what the message says;
    expect: the answer as schema.py has it (None: any); view: what of the answer is compared."""

    def __init__(self, name, request, code=None, part="", expect=None, view=None, headers=None):
        self.name, self.request, self.code, self.part = name, request, code, part
        self.expect, self.view, self.headers = expect, view, headers or {}


class Method:
    def __init__(self, request, response, *cases, streaming=False):
        self.request, self.response, self.streaming = request, response, streaming
        self.cases = [c for group in cases for c in (group if isinstance(group, list) else [group])]


INVALID, UNIMPLEMENTED, NOT_FOUND = "invalid_argument", "unimplemented", "not_found"
CONFLICT, EXHAUSTED = "already_exists", "resource_exhausted"
HTTP_STATUS = {
    None: 200, "canceled": 499, "unknown": 500, INVALID: 400, "deadline_exceeded": 504, NOT_FOUND: 404, CONFLICT: 409,
    "permission_denied": 403, EXHAUSTED: 429, "failed_precondition": 400, "aborted": 409, "out_of_range": 400,
    UNIMPLEMENTED: 501, "internal": 500, "unavailable": 503, "data_loss": 500, "unauthenticated": 401,
}

MAX_MATCHERS = 200  # of a selector
RANGE = {"start": "T-60000", "end": "T+60000"}
EMPTY_FLAME = {"names": ["total"], "levels": [{"values": [0, 0, 0, 0]}]}


def ranges(base, strict=False):
    """Rules of start and end; base: a request that is fine."""
    cases = [
        Case("no start", {**base, "start": 0}, INVALID, "missing time range in the query"),
        Case("no end", {**base, "end": 0}, INVALID, "missing time range in the query"),
        Case("start after end", {**base, "start": "T+1", "end": "T"}, INVALID, "start"),
        Case("negative", {**base, "start": -5, "end": "T"}),
    ]
    equal = {**base, "start": "T", "end": "T"}
    return cases + [Case("equal ends", equal, INVALID, "start") if strict else Case("equal ends", equal)]


BAD_SELECTORS = ["", "{", '{a="b"', '{a=~"("}', "{a=b}", '{a="b"}}', '{a!"b"}']


def selectors(base, field="labelSelector", repeated=False):
    def put(text):
        return {**base, field: [text] if repeated else text}

    cases = [Case("selector %r" % text, put(text), INVALID) for text in BAD_SELECTORS]
    return cases + [Case("selector %r" % text, put(text)) for text in ("{}", 'up{a="b"}', '{"ünï"="x"}', "{a=~'x|',}", "{a=`b`} # said")]


def types(base):
    part = "of the form <name>:<sample-type>:<sample-unit>:<period-type>:<period-unit>"
    cases = [Case("type %r" % t, {**base, "profileTypeID": t}, INVALID, part) for t in ("", "cpu", "a:b:c:d", "a:b:c:d:e:f:g")]
    return cases + [Case("type with a sixth part", {**base, "profileTypeID": CPU + ":delta"})]


def nodes(base):
    return [
        Case("max_nodes below zero", {**base, "maxNodes": -1}, INVALID, "max"),
        Case("max_nodes above the limit", {**base, "maxNodes": 1 << 62}, INVALID, "max"),
        Case("max_nodes zero", {**base, "maxNodes": 0}),
    ]


def ids(base, *fields):
    """Selectors of profiles, traces and spans: lists of ids, of the right length and hexadecimal."""
    bad = {"profileIdSelector": ["nope", ""], "traceIdSelector": ["0123", "x" * 32, SPAN_A], "spanSelector": ["x", "zz" * 8, TRACE_A]}
    cases = [Case("%s %r" % (f, v), {**base, f: [v]}, INVALID) for f in fields for v in bad[f]]
    if "spanSelector" in fields and "traceIdSelector" in fields:
        both = {**base, "spanSelector": [SPAN_A], "traceIdSelector": [TRACE_A]}
        cases.append(Case("span and trace together", both, INVALID))
    return cases


def of(service, **more):
    return {"profileTypeID": CPU, "labelSelector": '{service_name="%s"}' % service, **RANGE, **more}


def flame(answer):
    """Levels with names in place of indexes; totals."""
    graph = answer["flamegraph"]
    width = 7 if "leftTicks" in graph or "rightTicks" in graph else 4
    names = graph["names"]
    levels = []
    for level in graph["levels"]:
        v = level.get("values", [])
        levels.append([tuple(v[k : k + width - 1]) + (names[v[k + width - 1]],) for k in range(0, len(v), width)])
    assert names[0] == "total" and len(set(names)) == len(names)
    return levels, graph.get("total", 0), graph.get("maxSelf", 0), graph.get("leftTicks", 0), graph.get("rightTicks", 0)


def stacks(answer):
    """{root-first names: value} and the head of a pprof message in JSON's shape."""
    profile = answer["pprof"].get("profile", {}) if "pprof" in answer else answer
    if not profile.get("sample"):
        return {}
    strings = profile["stringTable"]
    functions = {f["id"]: strings[f["name"]] for f in profile["function"]}
    locations = {l["id"]: [functions[x["functionId"]] for x in l["line"]] for l in profile["location"]}
    out = {tuple(n for i in reversed(s["locationId"]) for n in reversed(locations[i])): s["value"] for s in profile["sample"]}
    kinds = [(strings[t["type"]], strings[t["unit"]]) for t in profile["sampleType"]]
    period = (strings[profile["periodType"]["type"]], strings[profile["periodType"]["unit"]], profile["period"])
    return out, kinds, period, strings[profile["defaultSampleType"]], profile["timeNanos"]


SHOP_LEVELS = [
    [(0, 110, 0, "total")], [(0, 110, 0, "main")], [(0, 50, 10, "fib"), (0, 20, 20, "gc"), (0, 40, 10, "handle")],
    [(10, 40, 0, "fib"), (30, 30, 30, "query")], [(10, 40, 40, "fib")],
]
# Pre-order, siblings from last to first: name length, name, self, children.
SHOP_TREE = (
    b"\0\0\1" b"\4main\0\3" b"\6handle\12\1" b"\5query\36\0" b"\2gc\24\0" b"\3fib\12\1" b"\3fib\0\1" b"\3fib\50\0"
)
SHOP_CALL_SITE = {"callSite": [{"name": "main"}, {"name": "fib"}]}
SHOP_PPROF = (
    {
        ("main", "handle", "query"): [30], ("main", "handle"): [10], ("main", "gc"): [20],
        ("main", "fib", "fib", "fib"): [40], ("main", "fib"): [10],
    },
    [("cpu", "nanoseconds")], ("cpu", "nanoseconds", 1_000_000_000), "cpu", "(T+60000)*1000000",
)

# (left delta, total, self, right delta, total, self, name)
DIFF_LEVELS = [
    [(0, 15, 0, 0, 8, 0, "total")], [(0, 15, 0, 0, 8, 1, "main")],
    [(0, 10, 10, 1, 4, 4, "a"), (0, 5, 5, 0, 0, 0, "b"), (0, 0, 0, 0, 3, 0, "c")],
    [(15, 0, 0, 5, 3, 3, "d")],
]


def labels(**pairs):
    return [{"name": n, "value": v} for n, v in sorted(pairs.items())]


def points(*pairs):
    return [{"value": float(v), "timestamp": t} for t, v in pairs]


ASYNC = [
    Case("async " + name, of("shop", **{"async": {"type": "ASYNC_QUERY_TYPE_" + name}}),
         view=lambda answer: ("async" in answer, answer["flamegraph"]["total"]), expect=(False, 110))
    for name in ("FORCE", "DISABLED")
]

HEAT = of("heat", start="T", end="T+2500", step=1.0, queryType="HEATMAP_QUERY_TYPE_INDIVIDUAL")
Y_MIN = [float(100 + 10 * i) for i in range(20)]


def cells(**counts):
    out = [0] * 20
    for cell, n in counts.items():
        out[int(cell[1:])] = n
    return out


METHODS = {
    "push.v1.PusherService/Push": Method(
        "push.v1.PushRequest", "push.v1.PushResponse",
        Case("nothing", {}, INVALID, "no profiles received"),
        Case("no labels", {"series": [{"samples": [{"rawProfile": b"x"}]}]}, INVALID),
        Case("no name", {"series": [{"labels": labels(service_name="x"), "samples": [{"rawProfile": b"x"}]}]}, INVALID),
        Case("no pprof", {"series": [{"labels": labels(__name__="x"), "samples": [{"rawProfile": b"nonsense"}]}]}, INVALID),
    ),
    "querier.v1.QuerierService/ProfileTypes": Method(
        "querier.v1.ProfileTypesRequest", "querier.v1.ProfileTypesResponse",
        ranges(RANGE),
        Case("no range is the last hour", {}),
        Case("the health check of Grafana", {"start": 1000, "end": 4000}, expect={}),
        Case("types", RANGE, expect={"profileTypes": [
            {"ID": CPU, "name": "process_cpu", "sampleType": "cpu", "sampleUnit": "nanoseconds", "periodType": "cpu", "periodUnit": "nanoseconds"},
            {"ID": CPU.replace("cpu:nanoseconds:", "samples:count:", 1), "name": "process_cpu", "sampleType": "samples",
             "sampleUnit": "count", "periodType": "cpu", "periodUnit": "nanoseconds"},
        ]}),
    ),
    "querier.v1.QuerierService/LabelNames": Method(
        "types.v1.LabelNamesRequest", "types.v1.LabelNamesResponse",
        ranges(RANGE), selectors(RANGE, "matchers", True),
        Case("names", {**RANGE, "matchers": ['{service_name="shop"}']}, expect={"names": [
            "__name__", "__period_type__", "__period_unit__", "__profile_type__", "__service_name__", "__type__", "__unit__",
            "pod", "service_name",
        ]}),
        Case("a whole type as metric name", {**RANGE, "matchers": [CPU + '{service_name="heat"}']},
             view=lambda a: "zone" in a["names"], expect=True),
    ),
    "querier.v1.QuerierService/LabelValues": Method(
        "types.v1.LabelValuesRequest", "types.v1.LabelValuesResponse",
        ranges({**RANGE, "name": "pod"}), selectors({**RANGE, "name": "pod"}, "matchers", True),
        Case("no name", RANGE, INVALID, "name is required"),
        Case("no name and no range", {}, INVALID, "missing time range"),
        Case("values", {**RANGE, "name": "service_name", "matchers": ['{service_name!="shop"}', '{service_name!~"s.*"}']},
             expect={"names": ["after", "before", "heat"]}),
        Case("of a type, named by the metric name", {**RANGE, "name": "zone", "matchers": [CPU + "{}"]}, expect={"names": ["east", "west"]}),
        Case("of a type, with as many matchers as a selector may have",
             {**RANGE, "name": "zone", "matchers": [CPU + "{%s}" % ",".join(['zone!="x%d"' % i for i in range(MAX_MATCHERS - 1)])]},
             expect={"names": ["east", "west"]}),
        Case("of a type of six parts", {**RANGE, "name": "pod", "matchers": [CPU + ":delta{}"]}, expect={"names": ["a"]}),
        Case("of a type that nobody has", {**RANGE, "name": "pod", "matchers": ["memory:inuse_space:bytes:space:bytes{}"]}, expect={}),
        Case("of two types", {**RANGE, "name": "pod", "matchers": [CPU, "memory:inuse_space:bytes:space:bytes"]}, expect={}),
        Case("a label that nobody has", {**RANGE, "name": "nobody"}, expect={}),
    ),
    "querier.v1.QuerierService/Series": Method(
        "querier.v1.SeriesRequest", "querier.v1.SeriesResponse",
        ranges(RANGE), selectors(RANGE, "matchers", True),
        Case("landing page", {**RANGE, "labelNames": ["service_name", "__profile_type__"], "matchers": ['{__type__="cpu"}']}, expect={
            "labelsSet": [{"labels": labels(__profile_type__=CPU, service_name=s)} for s in ("after", "before", "heat", "shop", "spans")]
        }),
        Case("a whole type as metric name", {**RANGE, "labelNames": ["zone"], "matchers": [CPU + '{zone!=""}']}, expect={
            "labelsSet": [{"labels": labels(zone=z)} for z in ("east", "west")]
        }),
        Case("none of the names, which others have", {**RANGE, "labelNames": ["pod"], "matchers": ['{service_name="before"}']},
             expect={"labelsSet": [{}]}),
        Case("a name that nobody has", {**RANGE, "labelNames": ["nobody"]}, expect={}),
    ),
    "querier.v1.QuerierService/SelectMergeStacktraces": Method(
        "querier.v1.SelectMergeStacktracesRequest", "querier.v1.SelectMergeStacktracesResponse",
        ranges(of("shop")), selectors(of("shop")), types(of("shop")), nodes(of("shop")), ASYNC,
        ids(of("spans"), "profileIdSelector", "traceIdSelector", "spanSelector"),
        Case("levels", of("shop"), expect=(SHOP_LEVELS, 110, 40, 0, 0), view=flame),
        Case("levels, cut", of("shop", maxNodes=2), view=flame, expect=(
            [[(0, 110, 0, "total")], [(0, 110, 0, "main")], [(0, 50, 10, "fib"), (0, 60, 60, "other")], [(10, 40, 40, "other")]],
            110, 60, 0, 0,
        )),
        Case("tree", of("shop", format="PROFILE_FORMAT_TREE"), expect={"tree": SHOP_TREE}),
        Case("pprof", of("shop", format="PROFILE_FORMAT_PPROF"), expect=SHOP_PPROF, view=stacks),
        Case("call site", of("shop", stackTraceSelector=SHOP_CALL_SITE), view=flame, expect=(
            [[(0, 50, 0, "total")], [(0, 50, 0, "main")], [(0, 50, 10, "fib")], [(10, 40, 0, "fib")], [(10, 40, 40, "fib")]],
            50, 40, 0, 0,
        )),
        Case("one span", of("spans", spanSelector=[SPAN_A]), view=flame, expect=(
            [[(0, 7, 0, "total")], [(0, 7, 0, "main")], [(0, 7, 7, "x")]], 7, 7, 0, 0,
        )),
        Case("two spans", of("spans", spanSelector=[SPAN_A, SPAN_B]), view=lambda a: flame(a)[1], expect=9),
        Case("one trace", of("spans", traceIdSelector=[TRACE_A]), view=lambda a: flame(a)[1], expect=9),
        Case("no span", of("spans", spanSelector=["00000000000000ff"]), expect={"flamegraph": EMPTY_FLAME}),
        Case("nobody's profile", of("shop", profileIdSelector=["01234567-89ab-cdef-0123-456789abcdef"]), expect={"flamegraph": EMPTY_FLAME}),
        Case("no data", of("nobody"), expect={"flamegraph": EMPTY_FLAME}),
        Case("no data, tree", of("nobody", format="PROFILE_FORMAT_TREE"), expect={}),
        Case("no data, dot", of("nobody", format="PROFILE_FORMAT_DOT"), expect={}),
        Case("no data, pprof", of("nobody", format="PROFILE_FORMAT_PPROF"), expect={"pprof": {"profile": {}}}),
        Case("dot", of("shop", format="PROFILE_FORMAT_DOT"), expect=True, view=lambda a: "digraph" in a["dot"] and "query" in a["dot"]),
        Case("pgo, one location", of("shop", format="PROFILE_FORMAT_PPROF", stackTraceSelector={"goPgo": {"keepLocations": 1}}),
             view=lambda a: stacks(a)[0], expect={("query",): [30], ("handle",): [10], ("gc",): [20], ("fib",): [50]}),
    ),
    "querier.v1.QuerierService/SelectMergeProfile": Method(
        "querier.v1.SelectMergeProfileRequest", "google.v1.Profile",
        ranges(of("shop")), selectors(of("shop")), types(of("shop")),
        ids(of("spans"), "profileIdSelector", "traceIdSelector"),
        Case("max_nodes without a limit", of("shop", maxNodes=1 << 62), expect=SHOP_PPROF, view=stacks),
        Case("pprof", of("shop"), expect=SHOP_PPROF, view=stacks),
        Case("cut", of("shop", maxNodes=2), view=lambda a: stacks(a)[0], expect={
            ("main", "fib"): [10], ("main", "fib", "other"): [40], ("main", "other"): [60],
        }),
        Case("one trace", of("spans", traceIdSelector=[TRACE_A]), view=lambda a: stacks(a)[0], expect={("main", "x"): [9]}),
        Case("no data", of("nobody"), expect={}),
    ),
    "querier.v1.QuerierService/SelectSeries": Method(
        "querier.v1.SelectSeriesRequest", "querier.v1.SelectSeriesResponse",
        ranges(of("shop", step=1.0)), selectors(of("shop", step=1.0)), types(of("shop", step=1.0)),
        [Case("step %s" % s, of("shop", step=s), INVALID, "step") for s in (0.0, -1.0, 0.0009)],
        Case("no step", of("shop"), INVALID, "step"),
        Case("exemplars of spans", of("shop", step=1.0, exemplarType="EXEMPLAR_TYPE_SPAN")),
        Case("no exemplars", of("shop", step=1.0, exemplarType="EXEMPLAR_TYPE_NONE")),
        Case("points", of("heat", start="T", end="T+2500", step=1.0), expect={
            "series": [{"points": points(("T", 100), ("T+1000", 320), ("T+2000", 300))}],
        }),
        Case("groups by sum", of("heat", start="T", end="T+3000", step=1.0, groupBy=["zone"]), expect={"series": [
            {"labels": labels(zone="east"), "points": points(("T", 100), ("T+1000", 320))},
            {"labels": labels(zone="west"), "points": points(("T+2000", 300), ("T+3000", 101))},
        ]}),
        Case("limit", of("heat", start="T", end="T+3000", step=10.0, groupBy=["zone"], limit=1), expect={"series": [
            {"labels": labels(zone="east"), "points": points(("T", 100))},
        ]}),
        Case("mean", of("heat", start="T", end="T+3000", step=1.0, aggregation="TIME_SERIES_AGGREGATION_TYPE_AVERAGE"), expect={
            "series": [{"points": points(("T", 100), ("T+1000", 160), ("T+2000", 300), ("T+3000", 101))}],
        }),
        Case("call site", of("shop", start="T", end="T", step=1.0, stackTraceSelector=SHOP_CALL_SITE), expect={
            "series": [{"points": points(("T", 50))}],
        }),
        Case("exemplars", of("heat", start="T", end="T+1000", step=1.0, groupBy=["zone"], exemplarType="EXEMPLAR_TYPE_INDIVIDUAL"),
             view=lambda a: [
                 [(e["timestamp"], e["value"], [l["name"] for l in e["labels"] if not l["name"].startswith("__")]) for e in p["exemplars"]]
                 for p in a["series"][0]["points"]
             ],
             expect=[[("T", 100, ["service_name"])], [("T+1000", 200, ["service_name"])]]),
        Case("no data", of("nobody", step=1.0), expect={}),
    ),
    "querier.v1.QuerierService/SelectMergeSpanProfile": Method(
        "querier.v1.SelectMergeSpanProfileRequest", "querier.v1.SelectMergeSpanProfileResponse",
        ranges(of("spans")), selectors(of("spans")), types(of("spans")), nodes(of("spans")), ids(of("spans"), "spanSelector"),
        Case("one span", of("spans", spanSelector=[SPAN_B]), view=flame, expect=(
            [[(0, 2, 0, "total")], [(0, 2, 0, "main")], [(0, 2, 2, "x")]], 2, 2, 0, 0,
        )),
        Case("tree", of("spans", spanSelector=[SPAN_B], format="PROFILE_FORMAT_TREE"), expect={"tree": b"\0\0\1\4main\0\1\1x\2\0"}),
        Case("another format is a flame graph", of("spans", spanSelector=[SPAN_B], format="PROFILE_FORMAT_PPROF"),
             view=lambda a: flame(a)[1], expect=2),
        Case("no data", of("nobody", spanSelector=[SPAN_B]), expect={"flamegraph": EMPTY_FLAME}),
    ),
    "querier.v1.QuerierService/SelectHeatmap": Method(
        "querier.v1.SelectHeatmapRequest", "querier.v1.SelectHeatmapResponse",
        ranges(HEAT, strict=True), selectors(HEAT), types(HEAT),
        Case("no query type", {**HEAT, "queryType": "HEATMAP_QUERY_TYPE_UNSPECIFIED"}, INVALID),
        Case("no step", {**HEAT, "step": 0.0}, INVALID, "step"),
        Case("limit below zero", {**HEAT, "limit": -1}, INVALID, "limit"),
        Case("exemplars of another kind", {**HEAT, "exemplarType": "EXEMPLAR_TYPE_SPAN"}, INVALID),
        Case("spans with exemplars of profiles", {
            **HEAT, "queryType": "HEATMAP_QUERY_TYPE_SPAN", "exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL"}, INVALID),
        # Values 100 to 300: cells of 10. 200 lies in cell 10, the largest in the last.
        Case("grid", HEAT, expect={"series": [{"slots": [
            {"timestamp": "T", "yMin": Y_MIN, "counts": cells(c0=1)},
            {"timestamp": "T+1000", "yMin": Y_MIN, "counts": cells(c2=1, c10=1)},
            {"timestamp": "T+2000", "yMin": Y_MIN, "counts": cells(c19=1)},
        ]}]}),
        Case("groups by count", {**HEAT, "groupBy": ["zone"], "limit": 1}, expect={"series": [{"labels": labels(zone="east"), "slots": [
            {"timestamp": "T", "yMin": Y_MIN, "counts": cells(c0=1)},
            {"timestamp": "T+1000", "yMin": Y_MIN, "counts": cells(c2=1, c10=1)},
        ]}]}),
        # 7 and 2: cells of a quarter, whose lower ends are cut to whole numbers. A value is in the last cell that it reaches.
        Case("spans", of("spans", start="T-500", end="T", step=1.0, queryType="HEATMAP_QUERY_TYPE_SPAN"), expect={"series": [{"slots": [
            {"timestamp": "T+500", "yMin": [float(2 + i // 4) for i in range(20)], "counts": cells(c3=1, c19=1)},
        ]}]}),
        Case("one value", of("shop", start="T-500", end="T", step=1.0, queryType="HEATMAP_QUERY_TYPE_INDIVIDUAL"),
             expect={"series": [{"slots": [{"timestamp": "T+500", "yMin": [110.0] * 20, "counts": cells(c19=1)}]}]}),
        Case("no data", {**HEAT, "labelSelector": '{service_name="nobody"}'}, expect={}),
    ),
    "querier.v1.QuerierService/Diff": Method(
        "querier.v1.DiffRequest", "querier.v1.DiffResponse",
        Case("no sides", {}, INVALID),
        Case("one side", {"left": of("before")}, INVALID),
        [Case("right: " + c.name, {"left": of("before"), "right": c.request}, c.code and INVALID, c.part)
         for c in ranges(of("after")) + selectors(of("after")) + types(of("after")) + nodes(of("after"))],
        Case("levels", {"left": of("before"), "right": of("after")}, expect=(DIFF_LEVELS, 23, 10, 15, 8), view=flame),
        Case("cut by the larger max_nodes", {"left": of("before", maxNodes=1), "right": of("after", maxNodes=2)}, view=flame, expect=(
            [[(0, 15, 0, 0, 8, 0, "total")], [(0, 15, 0, 0, 8, 1, "main")],
             [(0, 10, 10, 1, 4, 4, "a"), (0, 5, 5, 0, 3, 3, "other")]], 23, 10, 15, 8,
        )),
    ),
    "querier.v1.QuerierService/GetProfileStats": Method(
        "types.v1.GetProfileStatsRequest", "types.v1.GetProfileStatsResponse",
        Case("stats", {}, expect=(True, "T", "T+3000"), view=lambda a: (a["dataIngested"], a["oldestProfileTime"], a["newestProfileTime"])),
    ),
    "querier.v1.QuerierService/AnalyzeQuery": Method(
        "querier.v1.AnalyzeQueryRequest", "querier.v1.AnalyzeQueryResponse",
        Case("a question", {**RANGE, "query": CPU + '{service_name="shop"}'}),
    ),
    "version.v1.Version/Version": Method(
        "version.v1.VersionRequest", "version.v1.VersionResponse", Case("version", {}, expect={"QuerierAPI": 1}),
    ),
    "capabilities.v1.FeatureFlagsService/GetFeatureFlags": Method(
        "capabilities.v1.GetFeatureFlagsRequest", "capabilities.v1.GetFeatureFlagsResponse",
        Case("flags are sorted", {}, view=lambda a: [f["name"] for f in a["featureFlags"]] == sorted(f["name"] for f in a["featureFlags"]), expect=True),
    ),
    "settings.v1.SettingsService/Get": Method(
        "settings.v1.GetSettingsRequest", "settings.v1.GetSettingsResponse", Case("settings", {}),
    ),
    "settings.v1.SettingsService/Set": Method(
        "settings.v1.SetSettingsRequest", "settings.v1.SetSettingsResponse",
        Case("no setting", {}, INVALID),
        Case("no name", {"setting": {"value": "x"}}, INVALID),
        Case("a setting", {"setting": {"name": "pluginSettings", "value": '{"a":1}', "modifiedAt": 5000}},
             expect={"setting": {"name": "pluginSettings", "value": '{"a":1}', "modifiedAt": 5000}}),
        Case("an older one", {"setting": {"name": "pluginSettings", "value": "x", "modifiedAt": 4000}}, CONFLICT),
    ),
    "settings.v1.SettingsService/Delete": Method(
        "settings.v1.DeleteSettingsRequest", "settings.v1.DeleteSettingsResponse", Case("no name", {}, INVALID),
        Case("an unknown name", {"name": "never-set"}, expect={}),
    ),
    "settings.v1.RecordingRulesService/GetRecordingRule": Method(
        "settings.v1.GetRecordingRuleRequest", "settings.v1.GetRecordingRuleResponse",
        Case("no id", {}, NOT_FOUND), Case("nobody's id", {"id": "nobody"}, NOT_FOUND),
    ),
    "settings.v1.RecordingRulesService/ListRecordingRules": Method(
        "settings.v1.ListRecordingRulesRequest", "settings.v1.ListRecordingRulesResponse", Case("rules", {}),
    ),
    "settings.v1.RecordingRulesService/UpsertRecordingRule": Method(
        "settings.v1.UpsertRecordingRuleRequest", "settings.v1.UpsertRecordingRuleResponse",
        Case("nothing", {}, INVALID),
        Case("no metric", {"matchers": ['{__profile_type__="%s"}' % CPU]}, INVALID),
        Case("a bad metric", {"metricName": "a-b", "matchers": ['{__profile_type__="%s"}' % CPU]}, INVALID),
        Case("no profile type", {"metricName": "m", "matchers": ['{service_name="shop"}']}, INVALID),
        Case("a bad group", {"metricName": "m", "matchers": ['{__profile_type__="%s"}' % CPU], "groupBy": ["a.b"]}, INVALID),
        Case("nobody's id", {"id": "nobody", "metricName": "m", "matchers": ['{__profile_type__="%s"}' % CPU], "generation": 3}, NOT_FOUND),
    ),
    "settings.v1.RecordingRulesService/DeleteRecordingRule": Method(
        "settings.v1.DeleteRecordingRuleRequest", "settings.v1.DeleteRecordingRuleResponse",
        Case("no id", {}, NOT_FOUND), Case("nobody's id", {"id": "nobody"}, NOT_FOUND),
    ),
    "adhocprofiles.v1.AdHocProfileService/Upload": Method(
        "adhocprofiles.v1.AdHocProfilesUploadRequest", "adhocprofiles.v1.AdHocProfilesGetResponse",
        Case("nothing", {}, INVALID),
        Case("no base64", {"name": "x", "profile": "***"}, INVALID),
        Case("no profile", {"name": "x", "profile": "bm9uc2Vuc2U="}, INVALID),
    ),
    "adhocprofiles.v1.AdHocProfileService/Get": Method(
        "adhocprofiles.v1.AdHocProfilesGetRequest", "adhocprofiles.v1.AdHocProfilesGetResponse",
        Case("no id", {}, NOT_FOUND), Case("nobody's id", {"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV-x"}, NOT_FOUND),
    ),
    "adhocprofiles.v1.AdHocProfileService/List": Method(
        "adhocprofiles.v1.AdHocProfilesListRequest", "adhocprofiles.v1.AdHocProfilesListResponse", Case("profiles", {}),
    ),
    "adhocprofiles.v1.AdHocProfileService/Diff": Method(
        "adhocprofiles.v1.AdHocProfilesDiffRequest", "adhocprofiles.v1.AdHocProfilesDiffResponse",
        Case("no ids", {}, NOT_FOUND),
        Case("nobody's ids", {"leftId": "01ARZ3NDEKTSV4RRFFQ69G5FAV-x", "rightId": "01ARZ3NDEKTSV4RRFFQ69G5FAV-y"}, NOT_FOUND),
    ),
    "grpc.health.v1.Health/Check": Method(
        "grpc.health.v1.HealthCheckRequest", "grpc.health.v1.HealthCheckResponse",
        Case("all", {}, expect={"status": "SERVING"}),
        Case("a service", {"service": "querier.v1.QuerierService"}, expect={"status": "SERVING"}),
        Case("nobody's service", {"service": "nobody"}, NOT_FOUND),
    ),
    "grpc.health.v1.Health/Watch": Method(
        "grpc.health.v1.HealthCheckRequest", "grpc.health.v1.HealthCheckResponse", streaming=True,
    ),
}

# Messages of our own: their rows are in the tests of their parts. Here: that they obey the rules of the port.
# The plain routes: {path: (methods allowed, [(query string, body, status, part of the answer)])}.
CPU_OF = "query=" + CPU.replace(":", "%3A") + "%7Bservice_name%3D%22shop%22%7D"
LEFT, RIGHT = CPU_OF.replace("query", "leftQuery"), CPU_OF.replace("query", "rightQuery")
OTHER = "rightQuery=memory%3Ainuse_space%3Abytes%3Aspace%3Abytes%7B%7D"
UPLOADS = [
    ("", b"a;b 1\n", 400, "name"), ("name=%7Ba=b%7D", b"a;b 1\n", 400, "name"), ("name=x%7B=a%7D", b"a;b 1\n", 400, ""),
    ("name=x.nonsense", b"a;b 1\n", 400, "unknown profile type"), ("name=x&format=jfr", b"FLR\0", 422, "not a JFR recording"),
    ("name=x&format=speedscope", b"{}", 422, "has no"), ("name=x&format=pprof", b"\xff", 422, "pprof"),
    ("name=x&from=now", b"", 200, ""), ("name=x%zz", b"a 1\n", 400, ""),
]
ROUTES = {
    "/pyroscope/render": ("GET, HEAD", [
        (CPU_OF, None, 200, '"numTicks":0'), (CPU_OF + "&from=now-1h", None, 200, '"numTicks":110'),
        (CPU_OF + "&from=now-1h&format=dot", None, 200, "digraph"),
        (CPU_OF + "&from=now-1h&format=text", None, 200, "    50 ns  45.45% ███████▎          ├ fib\n"),
        (CPU_OF + "&format=text", None, 200, "no samples\n"),
        (CPU_OF.replace("shop", "spans") + "&format=text&span-id=" + SPAN_A, None, 200, "     7 ns 100.00% ████████████████  x\n"),
        (CPU_OF.replace("shop", "spans") + "&trace-id=cc,dd", None, 200, '"numTicks":9'),
        (CPU_OF.replace("shop", "spans") + "&trace-id=cc&from=now-1h&until=now-30m", None, 404, "searched"),
        (CPU_OF + "&span-id=" + SPAN_A, None, 404, "searched"), (CPU_OF + "&span-id=1&format=dot", None, 400, "json and text"),
        (CPU_OF + "&span-id=" + "1," * 101, None, 400, "more than 100 ids"),
        ("", None, 400, "query"), ("query=%7B%7D", None, 400, "type"), (CPU_OF[:-3], None, 400, ""),
        (CPU_OF + "&from=0", None, 400, "missing time range"), (CPU_OF + "&from=now&until=now-1h", None, 400, "after end"),
        (CPU_OF + "&aggregation=median", None, 200, ""), (CPU_OF + "&max-nodes=x", None, 200, ""),
    ]),
    "/pyroscope/render-diff": ("GET, HEAD", [
        (LEFT + "&" + RIGHT, None, 200, '"double"'), (LEFT, None, 400, ""), ("", None, 400, ""), (LEFT + "&" + OTHER, None, 400, ""),
    ]),
    "/pyroscope/label-values": ("GET, HEAD", [
        ("label=__name__", None, 200, CPU), ("label=service_name", None, 200, '"shop"'), ("", None, 400, "label"),
    ]),
    "/pyroscope/labels": ("GET, HEAD", [("", None, 200, '"service_name"')]),
    "/api/v1/login": ("POST", [("", b"{}", 501, "takes no passwords")]),
    "/api/v1/oidc/login": ("GET, HEAD", [("", None, 501, "no log-ins at an issuer")]),
    "/api/v1/oidc/callback": ("GET, HEAD", [("", None, 501, "no log-ins at an issuer")]),
    "/api/v1/logout": ("POST", [("", b"", 400, "no session")]),
    "/metrics/rules": ("GET, HEAD", [("", None, 200, "")]),
    "/ingest": ("POST", UPLOADS),
    "/pyroscope/ingest": ("POST", UPLOADS),
    "/api/v1/profile/ingest": ("POST", UPLOADS),
    "/profiling/v1/input": ("POST", [("", b"{}", 400, "no boundary")]),
    "/api/v2/profile": ("POST", [("", b"{}", 400, "no boundary")]),
    "/v1/input": ("POST", [("", b"{}", 400, "no boundary")]),
    "/api/v1/uploads": ("GET, HEAD, POST", [
        ("", None, 200, "{"), ("id=" + "0" * 32, None, 404, "no upload"),
    ]),
    "/api/v1/uploads/part": ("POST", [
        ("id=%s&part=0" % ("0" * 32), b"x", 404, "no upload"), ("part=x", b"x", 400, "not the number of a part"),
    ]),
    "/api/v1/uploads/finish": ("POST", [("id=" + "0" * 32, b"", 404, "no upload"), ("sha256=1", b"", 400, "64 hexadecimal")]),
    "/api/v1/uploads/delete": ("POST", [("", b"", 404, "no upload")]),
    "/api/v1/uploads/original": ("GET, HEAD", [("", None, 404, "no upload"), ("part=-1", None, 400, "not the number")]),
    "/v1/traces": ("POST", [("", b"", 415, "application/x-protobuf")]),
    "/v1development/profiles": ("POST", [("", b"", 415, "application/x-protobuf")]),
    "/api/v1/status/config": ("GET, HEAD", [("", None, 200, "max-samples")]),
    "/api/v1/status/config/diff": ("GET, HEAD", [("", None, 200, "data-dir")]),
    "/api/v1/status/config/default": ("GET, HEAD", [("", None, 200, "max-samples")]),
    "/debug/pprof/": ("GET, HEAD", [("", None, 200, "profile")]),
    "/debug/pprof/profile": ("GET, HEAD", [("seconds=0", None, 400, "seconds"), ("seconds=x", None, 400, "seconds"), ("seconds=61", None, 400, "")]),
    "/ready": ("GET, HEAD", [("", None, 200, "ready")]),
    "/healthz": ("GET, HEAD", [("", None, 200, "ok")]),
    "/metrics": ("GET, HEAD", [("", None, 200, "hearth_ready 1")]),
    "/api/v1/status/buildinfo": ("GET, HEAD", [("", None, 200, '"success"')]),
    "/": ("GET, HEAD", [("", None, 200, "/ingest")]),
    "/pyroscope": (None, [("", None, 404, "404 page not found")]),
}

# Of hearth itself, and of other protocols than this one: no rows here.
OWN = ("hearth.v1.", "skywalking.", "opentelemetry.")
# Answered by another layer than methods.def's messages: no rows either.
BARE = ("grpc.reflection.", "vcs.v1.")

