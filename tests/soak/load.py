"""The clients of a soak: each sends or asks something at its own pace and counts what was acknowledged and what failed."""

import collections
import gzip
import random
import threading
import time

import grpc

import agents
import otlp
import policy_agents
import questions
import tasks
import wire
from otlp_profiles import EXPORT, Exporter, to_proto
from pprof import Profile
from server import PUSH, ROOT, RpcError, now_ms

BUCKET_MS = 600_000
RANDOM = random.Random()
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
SAMPLES = 1000  # of each profile that is pushed
SERVICES, PODS, VARIANTS, BATCH = 6, 4, 16, 8
RECORDING = gzip.decompress((ROOT / "tests/golden/jfr/work.jfr.gz").read_bytes())
# Services whose profiles have all the same time: of the recording, as test_jfr.py says; 210 samples of 10 and 50 ms.
NANOSECONDS = {"soak-java": 140_000_000, "soak-text": 210 * 10_000_000, "soak-otlp": 210 * 50_000_000}
# The agent looks each five seconds, so it has two values in ten seconds.
POLICY = {"monitor": "MONITOR_KIND_PROCESS_CPU", "threshold": "80", "period_seconds": 10, "count": 1}


def inside_bucket(at_ms):
    """A time at least 3 s from the ends of its ten minutes, so that each way to send it leads to the same ones."""
    start = at_ms // BUCKET_MS * BUCKET_MS
    return min(max(at_ms, start + 3000), start + BUCKET_MS - 4000)


class Ledger:
    """What the server has acknowledged: {(service, start of ten minutes): [profiles, nanoseconds]}.

    The nanoseconds of pushed profiles are random, so a profile that is lost and another one that is doubled do not
    cancel each other out.
    """

    def __init__(self, entries=()):
        self.lock = threading.Lock()
        self.sums = {(service, bucket): [n, ns] for service, bucket, n, ns in entries}

    def add(self, service, at_ms, n, nanoseconds):
        with self.lock:
            entry = self.sums.setdefault((service, at_ms // BUCKET_MS * BUCKET_MS), [0, 0])
            entry[0] += n
            entry[1] += nanoseconds

    def entries(self):
        with self.lock:
            return [[*key, *entry] for key, entry in sorted(self.sums.items())]

    def profiles(self):
        return sum(entry[2] for entry in self.entries())


class Client(threading.Thread):
    """Calls act() once in `pause` seconds; an act that takes longer delays the next one."""

    def __init__(self, soak, pause):
        super().__init__(daemon=True)
        self.soak, self.pause = soak, pause
        self.server, self.ledger = soak.server, soak.ledger
        self.n_done, self.errors, self.seconds = 0, collections.Counter(), []

    def act(self):
        raise NotImplementedError

    def run(self):
        due = time.monotonic()
        while not self.soak.stopping.is_set():
            began = time.monotonic()
            try:
                self.act()
                self.n_done += 1
                self.seconds.append(time.monotonic() - began)
            except (RpcError, grpc.RpcError, OSError, AssertionError) as error:
                self.errors["%s: %s" % (type(self).__name__, str(error)[:300])] += 1
            due = max(due + self.pause, time.monotonic())
            self.soak.stopping.wait(due - time.monotonic())


class Pusher(Client):
    """Batches of gzipped pprof of several services, with IDs; one in twenty is up to three hours late."""

    variants = []

    @classmethod
    def make_variants(cls):
        """[(encoded, samples, nanoseconds)] of each service, without their time."""
        r = random.Random(1)
        for service in range(SERVICES):
            functions = ["service%d.function_%d" % (service, n) for n in range(400)]
            made = []
            for _ in range(VARIANTS):
                profile = Profile(TYPES)
                for _ in range(60):
                    depth, at = r.randint(6, 30), r.randint(0, 3)
                    stack = ["main"] + [functions[(at := (at * 7 + r.randint(0, 2)) % 400)] for _ in range(depth)]
                    n = r.randint(1, 16)
                    profile.add(stack, [n, n * 10_000_000])
                made.append((profile.encode(compress=False), *profile.totals()))
            cls.variants.append(made)

    def __init__(self, soak, pause, age_ms=0):
        super().__init__(soak, pause)
        self.age_ms = age_ms
        self.n = 0
        self.name = "%x" % RANDOM.getrandbits(48)

    def one(self, service):
        """(request, entry of the ledger) of one profile."""
        encoded, n_samples, nanoseconds = RANDOM.choice(self.variants[service])
        late = RANDOM.randint(0, 3 * 3_600_000) if RANDOM.random() < 0.05 else 0
        at_ms = inside_bucket(now_ms() - self.age_ms - late)
        more = RANDOM.getrandbits(32)
        last = [(2, [(1, ("packed", [1])), (2, ("packed", [SAMPLES - n_samples, more]))]), (9, at_ms * 1_000_000)]
        self.n += 1
        name = "soak-%d" % service
        labels = {"__name__": "process_cpu", "service_name": name, "pod": "%s-%d" % (name, RANDOM.randrange(PODS))}
        sample = [(1, gzip.compress(encoded + wire.encode(last), 1)), (2, "%s-%d" % (self.name, self.n))]
        pairs = [(1, [(1, key), (2, value)]) for key, value in labels.items()]
        return (1, pairs + [(2, sample)]), (name, at_ms, 1, nanoseconds + more)

    def act(self):
        # The first services send most: 1/1, 1/2, 1/3 ...
        services = RANDOM.choices(range(SERVICES), [1 / (n + 1) for n in range(SERVICES)], k=BATCH)
        made = [self.one(service) for service in services]
        request = wire.encode([series for series, _ in made])
        # A push in doubt is repeated, with the same IDs, until it is acknowledged: the ledger has no doubtful entries.
        while True:
            try:
                self.server.grpc_bytes(PUSH, request)
                break
            except RpcError as error:
                self.errors["Pusher: " + str(error)[:300]] += 1
                time.sleep(1)
                if self.soak.abandoned.is_set():
                    raise
        for _, entry in made:
            self.ledger.add(*entry)


class Texts(Client):
    """Collapsed stacks by /ingest."""

    def act(self):
        at_ms = inside_bucket(now_ms() - 20_000)
        body = "".join("main;work;step_%d %d\n" % (n, n + 1) for n in range(20)).encode()
        path = "/ingest?name=soak-text&sampleRate=100&from=%d&until=%d" % (at_ms // 1000, at_ms // 1000 + 1)
        self.send(path, body, {"Content-Type": "text/plain"})
        self.ledger.add("soak-text", at_ms, 1, NANOSECONDS["soak-text"])

    def send(self, path, body, headers=None):
        status, _, answer = self.server.http("POST", path, body, headers)
        if status != 200:
            raise RpcError("http", "%d %s" % (status, answer.decode(errors="replace")))


class Recordings(Texts):
    """JFR by /ingest."""

    def act(self):
        at_ms = inside_bucket(now_ms() - 20_000)
        path = "/ingest?name=soak-java&format=jfr&spyName=javaspy&from=%d&until=%d" % (at_ms // 1000, at_ms // 1000 + 1)
        self.send(path, RECORDING)
        self.ledger.add("soak-java", at_ms, 1, NANOSECONDS["soak-java"])


class Exports(Client):
    """Profiles by OTLP, some of whose samples name spans."""

    def act(self):
        at_ms = inside_bucket(now_ms() - 20_000)
        export = Exporter()
        samples = [
            export.sample(export.stack("leaf_%d" % n, "middle_%d" % (n % 5), "main"), [n + 1],
                          link=export.link(otlp.new_trace().hex(), otlp.new_span().hex()) if n < 5 else 0)
            for n in range(20)
        ]
        export.resource({"service.name": "soak-otlp"}, export.cpu(at_ms * 1_000_000, samples))
        message = {"resourceProfiles": export.resources, "dictionary": export.tables}
        answer = wire.decode(self.server.grpc_bytes(EXPORT, to_proto(message))[0])
        if answer:
            raise RpcError("partial", repr(answer))
        self.ledger.add("soak-otlp", at_ms, 1, NANOSECONDS["soak-otlp"])


class Spans(Client):
    """Traces of five spans by OTLP; n_spans counts those that were acknowledged."""

    n_spans = 0

    def act(self):
        trace = otlp.new_trace()
        root = otlp.span(trace, name="GET /pay")
        children = [otlp.span(trace, name="SELECT %d" % n, kind=otlp.CLIENT, parent=root["id"]) for n in range(4)]
        answer = self.server.grpc_bytes(otlp.EXPORT, otlp.request(({"service.name": "soak-0"}, [root, *children])))[0]
        if wire.decode(answer):
            raise RpcError("partial", repr(answer))
        self.n_spans += 5


class Tasks(Client):
    """An agent that is given a task of a minute every other minute and sends stack traces for it."""

    def __init__(self, soak, pause):
        super().__init__(soak, pause)
        # A task of the piece before may still run, and the tasks of a service must not overlap.
        self.service = "soak-tasks-%d" % soak.kept["piece"]
        self.rover, self.next_at, self.running, self.n_tasks = None, 0, {}, 0

    def act(self):
        if self.rover is None:
            self.rover = agents.Rover(self.server)
            self.rover.report(agents.Process(self.service, "pod-1", "app"))
        self.rover.keep_alive()
        if time.monotonic() >= self.next_at:
            self.next_at = time.monotonic() + 120
            tasks.create(self.server, service=self.service)
            self.n_tasks += 1
        now = now_ms()
        for arguments in self.rover.query_tasks():
            self.running[arguments["TaskId"]] = (arguments["ProcessId"], now)
        for task_id, (process_id, start) in list(self.running.items()):
            metadata = [(1, task_id), (2, process_id), (3, start), (4, now)]
            stack = lambda n: [(1, 1), (2, n), (3, "leaf_%d" % n), (3, "main")]
            self.rover.collect("skywalking.v3.EBPFProfilingService/collectProfilingData", [
                ([(1, metadata)] if n == 0 else []) + [(2, [(1, stack(n)), (2, n + 1)])] for n in range(10)
            ])
            if now - start > 50_000:
                del self.running[task_id]


class Policies(Client):
    """A policy that changes every five minutes, and an agent that follows it and reports its metrics."""

    def __init__(self, soak, pause):
        super().__init__(soak, pause)
        self.next_at = 0
        watched = policy_agents.Watched("soak-policy", "pod-1", "app")
        self.rover = policy_agents.PolicyRover(self.server, [watched])

    def act(self):
        if time.monotonic() >= self.next_at:
            if not self.next_at:
                agents.Rover(self.server).report(agents.Process("soak-policy", "pod-1", "app"))
            self.next_at = time.monotonic() + 300
            item = {**POLICY, "threshold": str(RANDOM.randint(70, 90))}
            policy = {"service": "soak-policy", "targets": [{"kind": "TASK_KIND_ON_CPU", "check_items": [item]}]}
            self.server.connect("hearth.v1.PolicyService/SetPolicy", {"policy": policy})
        self.rover.poll()
        now = now_ms()
        self.rover.look(now // 1000, {("app", "PROCESS_CPU", ""): RANDOM.randint(50, 100)})
        self.rover.check(now)


class Queries(Client):
    """Flame graphs, pprof, diffs, series and labels of one service or all, of up to six hours."""

    def act(self):
        now = now_ms()
        start = now - RANDOM.choice([900, 900, 3600, 3600, 6 * 3600]) * 1000
        selector = '{service_name="soak-%d"}' % RANDOM.randrange(SERVICES) if RANDOM.random() < 0.8 else "{}"
        kind = RANDOM.randrange(6)
        if kind < 2:
            self.server.stacktraces(questions.CPU, selector, start, now)
        elif kind == 2:
            self.server.merge_pprof(questions.CPU, selector, start, now)
        elif kind == 3:
            middle = (start + now) // 2
            self.server.diff((questions.CPU, selector, start, middle), (questions.CPU, selector, middle, now))
        elif kind == 4:
            self.server.select_series(questions.CPU, selector, start, now, 15, ["pod"])
        else:
            self.server.label_values("pod", start, now, [selector])
