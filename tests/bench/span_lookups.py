"""From traces to profiles at scale: `./dev bench --spans [MILLIONS]`.

Four services of ten pods are profiled every 15 seconds; each profile has 200 samples, each of a stack and a span of its own. Two services
are as an OpenTelemetry SDK of Pyroscope labels them: span_id, trace_id (four spans of a trace, which goes through both services),
span_name. Two as Datadog's: numeric span ids, one local root for four spans, the endpoint. An association is a span, a trace or
a local root in a profile: 250 of a profile.

What labels cost: the same samples with and without them, at the time of the push, gzip, to two servers in turn; CPU of hearthd and
PostgreSQL until the index has what came. Then everything is stored through ingest, with times in the hours before now, and
asked for by ids drawn at random.
"""

import os
import random
import threading
import time
import zlib

from measure import Running, say

SERVICES, PODS, SPANS, PER_REQUEST, EACH_SECONDS = 4, 10, 200, 4, 15
REQUESTS = SPANS // PER_REQUEST
KEYS = SPANS + REQUESTS  # different ids of a profile
TEMPLATES, STACKS = 20, 2000  # of a service
NAMES = ["GET /orders", "POST /orders", "GET /invoices", "PUT /carts", "select from orders", "cache.get", "publish", "render"]
PER_SERVICE = "service-%d"
IN_FLIGHT = 128
PART = 131072  # fewer fresh associations may wait for a quarter of an hour (server/store/build/span_fold.c)
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
TRACES = "hearth.v1.TraceProfileService/"


def is_sdk(service):
    return service % 2 == 0


# ---- profiles ----


class Template:
    """A profile without its ids and its time: what is drawn anew for each push is appended, or stands in the labels."""

    def __init__(self, service, number):
        from wire import encode

        rng = random.Random(service * 1000 + number)
        self.sdk = is_sdk(service)
        texts = ["", "samples", "count", "cpu", "nanoseconds", "span_id", "trace_id", "span_name", "span id", "local root span id",
                 "trace endpoint", *NAMES]
        first_name = texts.index(NAMES[0])
        functions, stacks = {}, []
        for stack in rng.sample(range(STACKS), SPANS):
            names = ["main", "server.serve", "server.handle%d" % (stack % 7), "app.Controller%d.run" % (stack % 40)]
            names += ["app.module%d.Class%d.method%d" % (service, stack % (50 + 40 * depth), depth) for depth in range(14)]
            names += ["app.service%d.work%d" % (service, stack)]
            stacks.append([functions.setdefault(name, len(functions) + 1) for name in reversed(names)])
        at_name = {}
        for name in functions:
            at_name[name] = len(texts)
            texts.append(name)
        self.first_id = len(texts)
        self.samples, self.plain = [], []
        for i, stack in enumerate(stacks):
            count = rng.randrange(1, 6)
            body = encode([(1, ("packed", stack)), (2, ("packed", [count, count * 10_000_000]))])
            self.plain.append(body)
            named = first_name + i % len(NAMES)
            if self.sdk:
                request = self.first_id + SPANS + i // PER_REQUEST
                body += encode([(3, [(1, 5), (2, self.first_id + i)]), (3, [(1, 6), (2, request)]), (3, [(1, 7), (2, named)])])
            else:
                body += encode([(3, [(1, 10), (2, named)])])
            self.samples.append(body)
        head = encode([(1, [(1, 1), (2, 2)]), (1, [(1, 3), (2, 4)])])
        tables = encode(
            [(4, [(1, n), (4, [(1, n), (2, n % 90)])]) for n in functions.values()]
            + [(5, [(1, n), (2, at_name[name]), (3, at_name[name])]) for name, n in functions.items()]
            + [(11, [(1, 3), (2, 4)]), (12, 10_000_000)] + [(6, text) for text in texts]
        )
        self.with_labels = head + b"".join(self.sample(body) for body in self.samples) + tables
        self.without = head + b"".join(self.sample(body) for body in self.plain) + tables
        self.head, self.tables = head, tables

    @staticmethod
    def sample(body):
        from wire import varint

        return b"\x12" + varint(len(body)) + body

    def make(self, time_ns, trace_seed, rng, labelled=True):
        """(pprof, [(span, local root or 0, trace text or "")])"""
        from wire import encode

        end = encode([(9, time_ns), (10, EACH_SECONDS * 10**9)])
        if not labelled:
            return self.without + end, []
        if self.sdk:
            spans = rng.randbytes(8 * SPANS).hex()
            traces = random.Random(trace_seed).randbytes(16 * REQUESTS).hex()
            spans = [spans[16 * i : 16 * i + 16] for i in range(SPANS)]
            traces = [traces[32 * i : 32 * i + 32] for i in range(REQUESTS)]
            ids = "".join(["2\x10" + s for s in spans] + ["2\x20" + t for t in traces]).encode()
            return self.with_labels + ids + end, lambda i: (int(spans[i], 16), 0, traces[i // PER_REQUEST])
        return self.numeric(end, rng)

    def numeric(self, end, rng):
        from wire import encode

        roots = [rng.getrandbits(63) | 1 << 62 for _ in range(REQUESTS)]
        spans = [rng.getrandbits(63) | 1 << 62 for _ in range(SPANS)]
        out = [self.head]
        root_label = [encode([(3, [(1, 9), (3, root)])]) for root in roots]
        for i, body in enumerate(self.samples):
            if i % PER_REQUEST == 0:
                spans[i] = roots[i // PER_REQUEST]  # the root has samples of its own
            n = spans[i]
            label = b"\x1a\x0c\x08\x08\x18" + bytes([n >> s & 127 | 128 for s in range(0, 56, 7)]) + bytes([n >> 56])
            out.append(self.sample(body + label + root_label[i // PER_REQUEST]))
        return b"".join([*out, self.tables, end]), lambda i: (spans[i], roots[i // PER_REQUEST], "")


def request_of(service, pod, pprof):
    from wire import encode

    labels = {"__name__": "process_cpu", "service_name": PER_SERVICE % service, "namespace": "production",
              "pod": "service-%d-7d4f9c6b5-%03d" % (service, pod)}
    return encode([(1, [*((1, [(1, name), (2, value)]) for name, value in labels.items()), (2, [(1, pprof)])])])


# ---- the bench ----


class Spans:
    def __init__(self, setting, millions):
        self.setting, self.quick = setting, setting.options.quick
        self.profiles = int(millions * 1e6) // SPANS
        self.templates = [[Template(s, n) for n in range(TEMPLATES)] for s in range(SERVICES)]
        self.numbers = {"load": os.getloadavg()[0]}
        self.known = []

    def start(self):
        directory = self.setting.server_module.temporary_directory()
        self.running = Running(self.setting, directory)
        self.server = self.running.server

    # ---- pushing ----

    def push_all(self, messages):
        call, room, failed, n = self.server.channel.unary_unary("/push.v1.PusherService/Push"), threading.Semaphore(IN_FLIGHT), [], 0

        def done(future):
            if future.code() is None or future.code().value[0] != 0:
                failed.append(future.details())
            room.release()

        for message in messages:
            room.acquire()
            call.future(message, timeout=120).add_done_callback(done)
            n += 1
        for _ in range(IN_FLIGHT):
            room.acquire()
        if failed:
            raise SystemExit("bench: %d of %d pushes failed: %s" % (len(failed), n, failed[0]))

    def history(self, profiles):
        """Profiles of the time before now, in the order of their times; some of their ids are kept."""
        rng = random.Random(time.time_ns())
        per_pod = -(-profiles // (SERVICES * PODS))
        begin = time.time_ns() - (per_pod + 1) * EACH_SECONDS * 10**9
        keep = max(SERVICES, profiles // 2500)
        for n in range(profiles):
            service, pod, tick = n % SERVICES, n // SERVICES % PODS, n // (SERVICES * PODS)
            at = begin + (tick * EACH_SECONDS * 10**9) + pod * 10**9 + service * 10**8
            seed = (begin, pod, tick) if is_sdk(service) else 0
            body, ids = self.templates[service][(tick + pod) % TEMPLATES].make(at, repr(seed), rng)
            if n % keep == n // keep % SERVICES:
                self.known.append((at, service, *ids(rng.randrange(SPANS))))
            yield request_of(service, pod, body)

    def idle(self, seconds=600):
        """Until the index has what came but for less than a part, roll-ups have what is due, and nobody works any more."""
        deadline, calm = time.monotonic() + seconds, 0
        while calm < 3 and time.monotonic() < deadline:
            before = sum(self.running.cpu())
            time.sleep(2)
            busy = (sum(self.running.cpu()) - before) / 2e6
            due = self.fresh() >= PART or self.late() or self.running.metric("hearth_rollup_lag_seconds")
            calm = calm + 1 if busy < 0.05 and not due else 0
        if calm < 3:
            say("background work did not end within %d s" % seconds)

    def fresh(self):
        return int(self.server.sql("SELECT coalesce(sum(n_associations), 0) FROM hearth_data.span_fresh")[0][0])

    def late(self):
        return int(self.server.sql("SELECT count(*) FROM hearth_data.profile_late")[0][0])

    def store(self, profiles):
        """CPU of a profile in microseconds, until all is folded."""
        before, began = self.state(), time.monotonic()
        self.push_all(self.history(profiles))
        took = time.monotonic() - began
        self.idle()
        after = self.state()
        return {"profiles": profiles, "seconds": took, "seconds_idle": time.monotonic() - began,
                "us": {key: (value - before.get(key, 0)) / profiles for key, value in after.items()}}

    # ---- what a label costs ----

    def now(self, profiles, labelled):
        """Bodies of this moment, gzip."""
        rng, at = random.Random(time.time_ns()), time.time_ns()
        out = []
        for n in range(profiles):
            service, pod = n % SERVICES, n // SERVICES % PODS
            body, _ = self.templates[service][n // SERVICES % TEMPLATES].make(at + n * 1000, repr((at, n)), rng, labelled)
            squeeze = zlib.compressobj(1, zlib.DEFLATED, 31)
            out.append(request_of(service, pod, squeeze.compress(body) + squeeze.flush()))
        return out

    def cost(self):
        """Two servers in turn: what profiles cost with labels and without, until the index has them."""
        rounds, profiles = (3, 300) if self.quick else (10, 1000)
        found = {}
        for labelled in (True, False):
            self.start()
            self.push_all(self.now(SERVICES * TEMPLATES * 2, labelled))
            found[labelled] = {"running": self.running, "at": self.state(), "bytes": 0}
        for _ in range(rounds):
            for labelled, one in found.items():
                self.running, self.server = one["running"], one["running"].server
                bodies = self.now(profiles, labelled)
                one["bytes"] += sum(map(len, bodies)) / profiles / rounds
                self.push_all(bodies)
        self.running, self.server = found[True]["running"], found[True]["running"].server
        deadline = time.monotonic() + 300
        while self.fresh() >= PART and time.monotonic() < deadline:
            time.sleep(1)
        for labelled, one in found.items():
            self.running = one["running"]
            after = self.state()
            one["us"] = {key: (value - one["at"].get(key, 0)) / profiles / rounds for key, value in after.items()}
            one["running"].server.terminate()
        return {name: {"bytes": found[labelled]["bytes"], **found[labelled]["us"]} for name, labelled in (("with", True), ("without", False))}

    def state(self):
        """CPU until now, in microseconds: of the processes, and what hearthd itself says of its parts."""
        hearthd, postgres = self.running.cpu()
        parts = {"hearthd": hearthd, "postgres": postgres, "all": hearthd + postgres}
        for (name, labels), value in self.running.server.metrics().items():
            if name in ("hearth_ingest_cpu_seconds_total", "hearth_builder_cpu_seconds_total"):
                kind, what = ("stage ", "stage") if "ingest" in name else ("background ", "step")
                parts[kind + dict(labels)[what]] = value * 1e6
        return parts

    # ---- questions ----

    def times(self, method, requests, check):
        from wire import decode, encode

        walls, wrong = [], 0
        before = self.running.cpu()
        for fields, expected in requests:
            request = encode(fields)
            start = time.monotonic()
            answer = self.server.grpc_bytes(TRACES + method, request)[0]
            walls.append(1000 * (time.monotonic() - start))
            wrong += not check(decode(answer), expected)
        after = self.running.cpu()
        walls.sort()
        return {"p50": walls[len(walls) // 2], "p95": walls[(95 * len(walls)) // 100], "p99": walls[(99 * len(walls)) // 100],
                "n": len(walls), "wrong": wrong, "cpu": [(b - a) / 1000 / len(walls) for a, b in zip(before, after)]}

    def questions(self):
        from wire import decode

        n = 100 if self.quick else 1000
        rng = random.Random(7)
        ids = [rng.choice(self.known) for _ in range(n)]
        traced = [known for known in self.known if known[4]]
        traces = [rng.choice(traced) for _ in range(n)]
        rooted = [known for known in self.known if known[3]]
        roots = [rng.choice(rooted) for _ in range(n)]
        is_exact = lambda answer, expected: decode(answer[1][0]).get(2) == [1]
        has_total = lambda answer, expected: decode(answer[1][0]).get(2, [0])[0] > 0
        span = lambda known: [(1, [(1, "%016x" % known[2])]), (2, [(3, 1)])]
        trace = lambda known: [(1, [(1, known[4])]), (2, [(3, 1)])]
        out = {}
        for what, method, requests, check in (
            ("LookupSpan, bare id", "LookupSpan", [(span(k), k) for k in ids], is_exact),
            ("LookupSpan, one that is not there", "LookupSpan", None, None),
            ("LookupTrace (8 spans in 2 profiles)", "LookupTrace", [(trace(k), k) for k in traces], is_exact),
            ("SpanProfile of a span, flame graph", "SpanProfile", [([(1, CPU), (2, "%016x" % k[2])], k) for k in ids], has_total),
            ("SpanProfile of a local root (4 spans)", "SpanProfile", [([(1, CPU), (3, "%016x" % k[3])], k) for k in roots], has_total),
            ("SpanProfile of a trace", "SpanProfile", [([(1, CPU), (4, k[4])], k) for k in traces], has_total),
        ):
            if requests is None:
                out[what] = self.absent(rng, n)
                continue
            self.times(method, requests[:50], check)
            out[what] = self.times(method, requests, check)
        return out

    def absent(self, rng, n):
        from wire import encode

        walls = []
        for _ in range(n):
            request = encode([(1, [(1, "%016x" % rng.getrandbits(64))]), (2, [(3, 1)])])
            start = time.monotonic()
            try:
                self.server.grpc_bytes(TRACES + "LookupSpan", request)
            except self.setting.server_module.RpcError as error:
                assert error.code == "not_found", error
            walls.append(1000 * (time.monotonic() - start))
        walls.sort()
        return {"p50": walls[n // 2], "p95": walls[95 * n // 100], "p99": walls[99 * n // 100], "n": n, "wrong": 0, "cpu": [0, 0]}

    def top(self):
        """TopSpans of ten pods for an hour, by each kind of id, and of a function."""
        end = max(known[0] for known in self.known) // 1_000_000
        out = {}
        for what, service, by, functions, seconds in (
            ("TopSpans, 10 pods, 1 h, spans", 0, 1, [], 3600),
            ("TopSpans, 10 pods, 15 min, spans", 0, 1, [], 900),
            ("TopSpans, 10 pods, 1 h, spans of a function", 0, 1, ["app.Controller7.run"], 3600),
            ("TopSpans, 10 pods, 1 h, traces", 0, 2, [], 3600),
            ("TopSpans, 10 pods, 1 h, local roots", 1, 3, [], 3600),
            ("TopSpans, 10 pods, 1 h, endpoints", 1, 4, [], 3600),
        ):
            selection = [(1, CPU), (2, '{service_name="%s"}' % (PER_SERVICE % service)), (3, end - 1000 * seconds), (4, end)]
            selection += [(5, [(2, name) for name in functions])] if functions else []
            requests = [([(1, selection), (2, by)], None)] * (5 if self.quick else 20)
            check = lambda answer, _: answer.get(3, [0])[0] > 0 and len(answer.get(1, [])) > 0
            self.times("TopSpans", requests[:2], check)
            out[what] = self.times("TopSpans", requests, check)
        return out

    # ---- disk ----

    def disk(self):
        def size(parents):
            return int(self.server.sql(
                "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c WHERE c.relkind = 'r' AND"
                " c.relnamespace = 'hearth_data'::regnamespace AND c.relname ~ '^(%s)'" % "|".join(parents))[0][0])

        tables = "(TABLE hearth_data.profile UNION ALL TABLE hearth_data.profile_late)"
        rows, attrs = self.server.sql("SELECT count(*), coalesce(sum(pg_column_size(attrs)), 0) FROM %s AS p" % tables)[0]
        return {"index": size(["span_index", "span_fresh"]), "attrs": int(attrs), "rows": int(rows),
                "profile": size(["profile"])}

    def run(self):
        out = self.numbers
        say("what labels cost")
        out["cost"] = self.cost()
        self.start()
        say("storing %d profiles with %d spans each" % (self.profiles, SPANS))
        out["stored"] = self.store(self.profiles)
        self.server.sql("VACUUM (ANALYZE)")  # what autovacuum does sooner or later
        out["disk"] = self.disk()
        say("asking")
        out["questions"] = {**self.questions(), **self.top()}
        out["load after"] = os.getloadavg()[0]
        self.server.terminate()
        return out


# ---- the report ----


def report(numbers):
    cost, stored, disk, lines = numbers["cost"], numbers["stored"], numbers["disk"], []
    n = stored["profiles"]
    lines.append("%.1f million spans in %d profiles (%.1f million ids), stored in %.0f s, folded %.0f s after the first; %d processors, load"
                 " %.1f before, %.1f after.\n" % (n * SPANS / 1e6, n, n * KEYS / 1e6, stored["seconds"], stored["seconds_idle"],
                                                 os.cpu_count(), numbers["load"], numbers["load after"]))
    lines.append("| question | p50 ms | p95 ms | p99 ms | CPU: hearthd + PostgreSQL, ms | wrong | goal |\n|---|---|---|---|---|---|---|")
    for what, seen in numbers["questions"].items():
        goal = "p95 <= 10 ms" if what.startswith("LookupSpan, bare") else ""
        lines.append("| %s | %.2f | %.2f | %.2f | %.2f + %.2f | %d of %d | %s |" % (
            what, seen["p50"], seen["p95"], seen["p99"], *seen["cpu"], seen["wrong"], seen["n"], goal))
    lines.append("\n| CPU of a profile, us | with labels | without | of a span | of an id | goal |\n|---|---|---|---|---|---|")
    a, b = cost["with"], cost["without"]
    for key in ["all", "hearthd", "postgres", *sorted(key for key in a if " " in key)]:
        x, y = a[key], b.get(key, 0)
        if max(x, y) >= 0.5:
            lines.append("| %s | %.1f | %.1f | %.3f | %.3f | %s |" % (
                key, x, y, (x - y) / SPANS, (x - y) / KEYS, "<= 0.5" if key == "all" else ""))
    lines.append("\nOf a profile that was stored for the questions, late: %s us.\n" % ", ".join(
        "%s %.1f" % (key, us) for key, us in stored["us"].items() if us >= 0.5))
    lines.append("| bytes | of a profile | of a span | of an id | goal |\n|---|---|---|---|---|")
    for what, size, goal in (("index", disk["index"], ""), ("ids beside the samples", disk["attrs"], ""),
                             ("both", disk["index"] + disk["attrs"], "<= 40")):
        lines.append("| %s | %.0f | %.1f | %.1f | %s |" % (what, size / n, size / n / SPANS, size / n / KEYS, goal))
    lines.append("| body of a push, gzip: with, without labels | %.0f, %.0f | %.1f | %.1f | |" % (
        a["bytes"], b["bytes"], (a["bytes"] - b["bytes"]) / SPANS, (a["bytes"] - b["bytes"]) / KEYS))
    return "\n".join(lines)


def run(setting, millions):
    numbers = Spans(setting, millions).run()
    print(report(numbers))
    return numbers
