"""What the server knows of a program whose profiler and tracer name the same spans, over its public API: run.py runs the programs.

A program says which span ran which function; both ran at the same time. So the span's flame graph has that function and not its
neighbour's, whoever asks and however the id is written; and who asks which span burned a function's CPU is told that span.
"""

from server import RpcError, eventually, now_ms

QUERIER = "querier.v1.QuerierService/"
TRACES = "hearth.v1.TraceProfileService/"


class Program:
    """What it said: spans {function: id, 16 hex digits}, trace (32, or none), roots {function: id}."""

    def __init__(self, server, service, profile_type, started, spans, outside, trace=None, roots=None):
        self.server, self.type, self.spans, self.outside = server, profile_type, spans, outside
        self.service, self.trace, self.roots = service, trace, roots or {}
        self.selector = '{service_name="%s"}' % service
        self.range = {"start": started, "end": now_ms() + 1000}

    # ---- questions ----

    def ask(self, method, **fields):
        return self.server.connect(TRACES + method, fields)

    def selection(self, functions=()):
        selection = {"profileType": self.type, "labelSelector": self.selector, **self.range}
        return {**selection, "stacks": {"functions": list(functions)}} if functions else selection

    def profile(self, **of):
        """(total, functions) of the only item."""
        answer = self.ask("SpanProfile", profileType=self.type, **of)
        assert len(answer["profiles"]) == 1, answer
        return int(answer["profiles"][0]["total"]), set(answer["profiles"][0]["flamegraph"]["names"])

    def pyroscope(self, span):
        """The same by Pyroscope's own question."""
        request = {"profileTypeID": self.type, "labelSelector": self.selector, "spanSelector": [span], **self.range}
        graph = self.server.connect(QUERIER + "SelectMergeSpanProfile", request)["flamegraph"]
        return int(graph["total"]), set(graph["names"])

    def rows(self, by, functions=()):
        answer = self.ask("TopSpans", selection=self.selection(functions), by="SPANS_BY_" + by)
        rows = answer.get("rows", [])
        known = sum(int(row["value"]) for row in rows) + int(answer.get("unlabelled", 0))
        assert known == int(answer["total"]), "%d of %s are accounted for" % (known, answer["total"])
        return rows, int(answer["total"]), int(answer.get("unlabelled", 0))

    # ---- what must hold ----

    def assert_functions(self, found, own, where):
        """`own` of the functions that spans ran, and no other."""
        for function in [*self.spans, self.outside]:
            there = any(function in name for name in found)
            assert there == (function in own), "%s: %s is%s in %s" % (where, function, "" if there else " not", sorted(found))

    def full_name(self, function):
        return next(name for name in self.profile(spanIds=[self.spans[function]])[1] if function in name)

    def arrived(self):
        try:
            answer = self.ask("LookupSpan", spans=[{"spanId": span} for span in self.spans.values()], options={"exactOnly": True})
        except RpcError as error:
            assert error.code == "not_found", error
            return False
        return all(found.get("certainty") == "CERTAINTY_EXACT" for found in answer["results"])

    def check_span(self, function, span):
        total, functions = self.profile(spanIds=[span])
        self.assert_functions(functions, [function], "SpanProfile")
        assert (total, functions) == self.pyroscope(span), "SelectMergeSpanProfile says something else"
        assert (total, functions) == self.profile(spanIds=[str(int(span, 16))]), "in decimal it is something else"
        found = self.ask("LookupSpan", spans=[{"spanId": span}])["results"][0]
        assert found["certainty"] == "CERTAINTY_EXACT" and found["spanIds"] == [span], found
        kinds = {kind["profileType"]: int(kind["total"]) for kind in found["types"]}
        assert kinds.get(self.type) == total, "LookupSpan has %s, the profile %d" % (kinds, total)
        assert found["profiles"] and all(p["service"] == self.service for p in found["profiles"]), found["profiles"]
        further = {"profileTypeID": self.type, "labelSelector": found["labelSelector"], "spanSelector": found["spanIds"],
                   "start": found["start"], "end": found["end"]}
        graph = self.server.connect(QUERIER + "SelectMergeSpanProfile", further)["flamegraph"]
        assert int(graph["total"]) == total, "asking further with what was said gives %s of %d" % (graph["total"], total)
        return total

    def check_reverse(self, function, span):
        rows, total, unlabelled = self.rows("SPAN", [self.full_name(function)])
        assert rows and rows[0]["spanId"] == span, "%s is burned by %s" % (function, rows)
        neighbours = [row for row in rows if row["spanId"] in self.spans.values() and row["spanId"] != span]
        assert not neighbours and unlabelled * 20 < total, "%s: %s, %d of %d unlabelled" % (function, rows, unlabelled, total)
        if self.trace:
            rows = self.rows("TRACE", [self.full_name(function)])[0]
            assert rows[0]["traceId"] == self.trace, rows

    def check_trace(self):
        found = self.ask("LookupTrace", traces=[{"traceId": self.trace}])["results"][0]
        assert found["certainty"] == "CERTAINTY_EXACT", found
        assert set(self.spans.values()) <= set(found["spanIds"]), found
        largest = [span["spanId"] for span in found["spans"][:2]]
        assert sorted(largest) == sorted(self.spans.values()), found["spans"]
        self.assert_functions(self.profile(traceIds=[self.trace])[1], list(self.spans), "SpanProfile of the trace")

    def check_roots(self):
        for function, root in self.roots.items():
            functions = self.profile(localRootIds=[str(int(root, 16))])[1]
            self.assert_functions(functions, [function], "SpanProfile of the local root")

    def check_whole(self):
        """Spans and the rest are the whole."""
        rows, total, unlabelled = self.rows("SPAN")
        request = {"profileTypeID": self.type, "labelSelector": self.selector, **self.range}
        whole = int(self.server.connect(QUERIER + "SelectMergeStacktraces", request)["flamegraph"]["total"])
        assert whole == total and unlabelled > 0, "%d of %d, %d without a span" % (total, whole, unlabelled)
        return sum(int(row["value"]) for row in rows if row.get("spanId") in self.spans.values()) / total

    def check_unknown(self):
        try:
            answer = self.ask("LookupSpan", spans=[{"spanId": "00000000deadbeef"}])
        except RpcError as error:
            assert error.code == "not_found" and "00000000deadbeef" in error.message, error
        else:
            raise AssertionError("an unknown span is found: %s" % answer)

    def check_stored(self, names):
        """The tracer's spans came by OTLP: {function: name of the span}."""
        for function, span in self.spans.items():
            def stored():
                found = self.ask("LookupSpan", spans=[{"spanId": span}])["results"][0]
                return found.get("spans", [{}])[0].get("span")

            known = eventually(stored, 10, what="the span of %s by OTLP" % function)
            assert (known["service"], known["name"], known["spanId"]) == (self.service, names[function], span), known
            row = self.rows("SPAN", [self.full_name(function)])[0][0]
            assert row["name"] == names[function], row

    def check(self, names=None):
        eventually(self.arrived, 20, 0.5, "a profile with the spans of " + self.service)
        for function, span in self.spans.items():
            self.check_span(function, span)
            self.check_reverse(function, span)
        if self.trace:
            self.check_trace()
        self.check_roots()
        self.check_unknown()
        if names:
            self.check_stored(names)
        return "%d spans have %.0f %% of %s" % (len(self.spans), 100 * self.check_whole(), self.type)
