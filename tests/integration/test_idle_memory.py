"""An idle server gives the memory of earlier queries and pushes back to the kernel."""

import concurrent.futures
import random
import re
import unittest

import prometheus
from pprof import Profile
from questions import CPU
from server import Server, eventually, now_ms, unless_sanitized

STACKS, DEPTH, SERIES = 2_000, 10, 4


class IdleMemory(unittest.TestCase):
    def setUp(self):
        self.server = Server("--builder=false", "--query-threads", "4")
        self.addCleanup(self.server.stop)

    def anonymous_mib(self):
        with open("/proc/%d/smaps_rollup" % self.server.process.pid) as rollup:
            return int(re.search(r"Pss_Anon:\s+(\d+)", rollup.read()).group(1)) / 1024

    @unless_sanitized("what was freed is kept; there is nothing to give back")
    def test_memory_of_many_queries_is_given_back_when_the_server_is_idle(self):
        rng = random.Random(3)
        start = now_ms() - 60_000
        for series in range(SERIES):
            profile = Profile([("cpu", "nanoseconds")], time_ns=start * 1_000_000)
            for _ in range(STACKS):
                profile.add(["function_%d" % rng.randrange(900) for _ in range(DEPTH)], [10_000_000])
            self.server.push(profile.encode(), {"service_name": "deep", "__name__": "process_cpu", "pod": str(series)})

        side = {"profileType": CPU, "labelSelector": '{service_name="deep"}', "start": start - 1000, "end": start + 1000}

        def ask(_):
            answer = self.server.connect("hearth.v1.QueryService/Diff", {"left": side, "right": side, "maxNodes": 1000})
            return answer["flamegraph"]["total"], self.anonymous_mib()

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            totals, sizes = zip(*pool.map(ask, range(60)))
        self.assertEqual(len(set(totals)), 1)

        # Dictionaries and name trees stay, arenas do not. On a slow machine much is given back between the queries.
        most = max(sizes)
        eventually(lambda: self.anonymous_mib() < most - 10, 60, what="10 MiB given back of %d" % most)

    def test_an_idle_server_keeps_no_memory_for_the_next_push(self):
        rng = random.Random(4)
        kept = lambda: prometheus.value(self.server.metrics(), "hearth_push_memory_bytes")
        profile = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * 1_000_000)
        for _ in range(STACKS):
            profile.add(["function_%d" % rng.randrange(900) for _ in range(DEPTH)], [10_000_000])

        # Memory to decode the next profile with; the look of each 5 s may come between push and question.
        def keeps_some():
            self.server.push(profile.encode(), {"service_name": "one", "__name__": "process_cpu"})
            return kept() > 10_000

        eventually(keeps_some, 30, what="memory kept for the next push")
        # Rarely, because reading the metrics is work as well.
        eventually(lambda: kept() == 0, 60, pause=3, what="the memory of the push given back")


if __name__ == "__main__":
    unittest.main()
