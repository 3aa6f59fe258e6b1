"""Days whose time has passed are dropped on a coordinator and two workers.

Runs only where HEARTH_TEST_CITUS names the binaries of a PostgreSQL with Citus (docs/testing.md).
"""

import unittest

from citus_nodes import CITUS, WHY_NOT, Nodes
from pprof import Profile
from questions import CPU
from server import Server, eventually, now_ms, sql

DAY = 24 * 3600 * 1000
LEAVES = ("SELECT count(*) FROM pg_class WHERE relnamespace = 'hearth_data'::regnamespace AND relkind = 'r' AND"
          " relname ~ '^(drop_)?(profile|segment|roll_10m)_[0-9]{8}' AND substring(relname FROM '[0-9]{8}') <"
          " to_char(now() AT TIME ZONE 'UTC' - interval '3 days', 'YYYYMMDD')")


@unittest.skipUnless(CITUS, WHY_NOT)
class CitusRetention(unittest.TestCase):
    def test_days_past_their_time_are_dropped_on_all_nodes_and_younger_ones_stay(self):
        nodes = Nodes()
        self.addCleanup(nodes.stop)
        nodes.distribute()
        now = now_ms()
        server = Server("--builder-interval", "200ms", database_url=nodes.url())
        self.addCleanup(server.stop)
        for days in range(6):
            profile = Profile([("cpu", "nanoseconds")], time_ns=(now - days * DAY) * 10**6).add(["main", "day%d" % days], [1])
            server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "api"})
        tables = lambda: [int(sql(node.url(), LEAVES)[0][0]) for node in (nodes.coordinator, *nodes.workers)]  # noqa: E731
        self.assertTrue(all(tables()), tables())

        self.assertEqual(server.terminate(), 0)
        server.options = ["--builder-interval", "200ms", "--retain-raw", "2d", "--retain-10m", "2d", "--compaction=false"]
        server.start()
        eventually(lambda: not any(tables()), 60, what="dropping the old days on all nodes")
        functions = server.flamegraph(CPU, '{service_name="api"}', now - DAY - 1000, now + 1000).functions()
        self.assertLessEqual({"day0", "day1"}, set(functions))


if __name__ == "__main__":
    unittest.main()
