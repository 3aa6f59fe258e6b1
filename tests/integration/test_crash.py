"""kill -9 under load: nothing acknowledged is lost, nothing is stored twice.

HEARTH_CRASH_CYCLES cycles (10), in turn against hearthd, PostgreSQL's postmaster and one of its backends. Each profile has
a stack of its own, so the merged answer says of every single one how often it is there.
"""

import collections
import os
import random
import signal
import threading
import time
import unittest

import grpc

import wire
from pprof import Decoded, Profile
from questions import CPU
from server import PROFILES, PUSH, Server, eventually, note, now_ms

CYCLES = int(os.environ.get("HEARTH_CRASH_CYCLES", "10"))
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
PUSHERS = 6  # the second half has sample IDs and repeats what was not acknowledged
LOAD_SECONDS = 0.6


class Pusher(threading.Thread):
    services = 2
    refusals = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)

    def __init__(self, number, target):
        super().__init__(daemon=True)
        self.number, self.target = number, target
        self.repeats = number >= PUSHERS // 2
        self.acknowledged, self.doubtful, self.unexpected = set(), set(), collections.Counter()
        self.n_repeated = self.n_refused = 0
        self.last_refusal = None
        self.stopping = threading.Event()

    def now_ns(self):
        return time.time_ns()

    def request(self, name):
        labels = {"__name__": "process_cpu", "service_name": "crash-%d" % (self.number % self.services), "pusher": str(self.number)}
        # A new series now and then: the catalogue is killed as well.
        labels["part"] = name.rsplit("-", 1)[0] + "-%d" % (int(name.rsplit("-", 1)[1]) // 20)
        pairs = [(1, [(1, n), (2, v)]) for n, v in labels.items()]
        profile = Profile(TYPES, time_ns=self.now_ns()).add(["main", "p%d" % self.number, name], [1, 1]).encode()
        sample = [(1, profile)] + ([(2, name)] if self.repeats else [])
        return wire.encode([(1, pairs + [(2, sample)])])

    def push(self, request):
        """True when acknowledged."""
        try:
            self.target.channel.unary_unary("/" + PUSH)(request, timeout=5)
            return True
        except grpc.RpcError as error:
            self.n_refused += 1
            self.last_refusal = "%s: %s: %s" % (time.strftime("%T"), error.code().name, error.details())
            if error.code() not in self.refusals:
                self.unexpected[error.code().name + ": " + error.details()] += 1
        except ValueError:  # the channel was closed with its server
            pass
        time.sleep(0.02)
        return False

    def run(self):
        n = 0
        while not self.stopping.is_set():
            name = "f-%d-%d" % (self.number, n)
            n += 1
            request = self.request(name)
            if self.push(request):
                self.acknowledged.add(name)
                continue
            self.doubtful.add(name)
            while self.repeats:
                self.n_repeated += 1
                if self.push(request):
                    self.doubtful.discard(name)
                    self.acknowledged.add(name)
                    break


def progress(pushers, seconds=90):
    """Everybody began a push that was acknowledged: at most one of each was under way before."""
    before = [len(p.acknowledged) for p in pushers]
    waiting = lambda: [p for p, b in zip(pushers, before) if len(p.acknowledged) <= b + 1]
    try:
        eventually(lambda: not waiting(), seconds, what="a push by everybody")
    except AssertionError as error:
        refusals = ["pusher %d was last refused at %s" % (p.number, p.last_refusal) for p in waiting()]
        log = pushers[0].target.log() if isinstance(pushers[0].target, Server) else ""
        raise AssertionError("\n".join([str(error), *refusals, log[-10000:]])) from None


def count_stored(case, server, pushers, start, end):
    """({name: times stored}, acknowledged names, names in doubt), after the acknowledged ones were found exactly once."""
    acknowledged = set().union(*(p.acknowledged for p in pushers))
    doubtful = set().union(*(p.doubtful for p in pushers))
    case.assertFalse(sum((p.unexpected for p in pushers), collections.Counter()))
    case.assertFalse(any(p.doubtful for p in pushers if p.repeats))
    merged = Decoded(server.merge_pprof(CPU, "{}", start, end))
    counted = {stack[0][0]: value for stack, value in merged.by_stack(0).items()}
    case.assertEqual({n for n in acknowledged if n not in counted}, set(), "lost")
    case.assertEqual({n: v for n, v in counted.items() if v != 1}, {}, "doubled")
    case.assertEqual(set(counted) - acknowledged - doubtful, set(), "never pushed")
    return counted, acknowledged, doubtful


class Crash(unittest.TestCase):
    def kill_hearthd(self):
        postmaster = self.server.postmaster_pid()
        self.server.kill9()
        if self.random.random() < 0.5:  # as when the machine dies: both at once
            try:
                os.kill(postmaster, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.server.start()

    def kill_postmaster(self):
        eventually(self.backends, 60, what="a backend")
        os.kill(self.server.postmaster_pid(), signal.SIGKILL)

    def backends(self):
        """None while PostgreSQL refuses connections: backends of a dead postmaster may have committed a little longer."""
        try:
            rows = self.server.sql(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        except AssertionError:
            return None
        return [int(row[0]) for row in rows]

    def kill_backend(self):
        os.kill(self.random.choice(eventually(self.backends, 60, what="a backend")), signal.SIGKILL)

    def test_nothing_acknowledged_is_lost_and_nothing_is_doubled(self):
        seed = int(os.environ.get("HEARTH_CRASH_SEED", time.time_ns() % 1_000_000))
        self.random = random.Random(seed)
        self.server = Server("--commit-linger", "2ms")
        start = now_ms()
        self.pushers = [Pusher(k, self.server) for k in range(PUSHERS)]
        for pusher in self.pushers:
            pusher.start()
        kills = (self.kill_hearthd, self.kill_postmaster, self.kill_backend)
        for cycle in range(CYCLES):
            progress(self.pushers)
            time.sleep(LOAD_SECONDS * self.random.random())
            kills[cycle % len(kills)]()
        progress(self.pushers)
        for pusher in self.pushers:
            pusher.stopping.set()
        for pusher in self.pushers:
            pusher.join(60)
            self.assertFalse(pusher.is_alive())
        self.server.wait_ready()
        self.check(start, now_ms(), seed)
        self.assertEqual(self.server.terminate(), 0)

    def check(self, start, end, seed):
        counted, acknowledged, doubtful = count_stored(self, self.server, self.pushers, start, end)
        note(
            "%d cycles, seed %d: %d acknowledged, %d repeated until acknowledged, %d in doubt"
            % (CYCLES, seed, len(acknowledged), sum(p.n_repeated for p in self.pushers), len(doubtful))
        )
        # The same by the other ways to ask.
        stored = collections.Counter(name.split("-")[1] for name in counted)
        series = self.server.select_series(CPU, "{}", start, end + 60_000, 60, ["pusher"])
        by_series = {dict(labels)["pusher"]: int(sum(v for _, v in points)) for labels, points in series}
        self.assertEqual(by_series, dict(stored))
        self.assertEqual(self.server.sql("SELECT count(*) FROM " + PROFILES), [[str(len(counted))]])
        self.assertEqual(
            self.server.sql("SELECT count(DISTINCT (writer_id, profile_no)) FROM " + PROFILES),
            [[str(len(counted))]],
        )


if __name__ == "__main__":
    unittest.main()
