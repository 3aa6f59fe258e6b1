"""What the server knows of a program whose Datadog profiler has sent to it as to an agent: run.py runs the programs."""

import os

from pprof import Decoded
from server import eventually, now_ms

SECONDS = 12
LABELS = {"env": "conformance", "version": "1.2.3"}


def environment(service, url, **more):
    """What a user sets: the agent's address, and the service."""
    return {
        **os.environ, "DD_TRACE_AGENT_URL": url, "DD_SERVICE": service, "DD_ENV": LABELS["env"], "DD_VERSION": LABELS["version"],
        "DD_PROFILING_ENABLED": "true", **more,
    }


class Sent:
    """A program has run; its answers over the public API."""

    def __init__(self, server, service, language, started):
        self.server, self.service, self.started = server, service, started
        self.labels = {**LABELS, "language": language}
        self.selector = '{service_name="%s"}' % service

    def values(self, label):
        return self.server.label_values(label, self.started, now_ms() + 1000, [self.selector])

    def selection(self, kind):
        return {"profileType": kind, "labelSelector": self.selector, "start": self.started, "end": now_ms() + 1000}

    def check_types(self, types):
        missing = lambda: [kind for kind in types if kind not in self.values("__profile_type__")]  # noqa: E731
        try:
            eventually(lambda: not missing(), 10, 0.5)
        except AssertionError:
            raise AssertionError("no %s; there are %s" % (missing(), self.values("__profile_type__"))) from None
        for name, value in self.labels.items():
            assert self.values(name) == [value], "the label %s is %s" % (name, self.values(name))
        noise = [name for name in ("runtime_id", "process_id", "profile_seq", "pid") if self.values(name)]
        assert not noise, "labels that make new series: %s" % noise

    def check_function(self, kind, function, seconds, least=0.5):
        """The function has at least that part of the time, and the whole is a time that the program can have burnt."""
        merged = Decoded(self.server.merge_pprof(kind, self.selector, self.started, now_ms() + 1000))
        total, rows = sum(merged.totals()), merged.by_function(0)
        share = max([value for name, (_, value) in rows.items() if function in name], default=0) / max(total, 1)
        assert share > least, "%s has %.0f %% of %s; functions are %s" % (function, 100 * share, kind, sorted(rows)[:20])
        assert seconds[0] <= total / 1e9 <= seconds[1], "%.1f s of %s, expected %s" % (total / 1e9, kind, seconds)
        return "%s has %.0f %% of %.1f s" % (function, 100 * share, total / 1e9)

    def check_spans(self, kind, endpoint, least=0.5):
        rows = self.server.connect("hearth.v1.TraceProfileService/TopSpans", {"selection": self.selection(kind), "by": "SPANS_BY_ENDPOINT"})
        total = int(rows["total"])
        share = sum(int(row["value"]) for row in rows.get("rows", []) if row.get("endpoint") == endpoint) / total
        assert share > least, "%s has %.0f %% of %s: %s" % (endpoint, 100 * share, kind, rows)
        spans = self.server.connect("hearth.v1.TraceProfileService/TopSpans", {"selection": self.selection(kind), "by": "SPANS_BY_SPAN"})
        assert spans.get("rows"), "no spans: %s" % spans
        return "endpoint %.0f %%" % (100 * share)

    def check_thread(self, kind, thread):
        top = self.server.connect("hearth.v1.QueryService/Top", {"selection": self.selection(kind), "kind": "TOP_KIND_THREAD"})
        names = [row["name"] for row in top["rows"]]
        assert any(thread in name for name in names), "no thread %s: %s" % (thread, names)

    def check_quiet(self):
        """Nothing was refused."""
        lines = [line for line in self.server.log().splitlines() if "Datadog client refused" in line]
        assert not lines, lines[-3:]
