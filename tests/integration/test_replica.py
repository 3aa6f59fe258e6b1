"""Reads on a streaming replica: the answer is that of the primary, whoever gives it."""

import threading
import time
import unittest

from pprof import Profile
from questions import CPU
from server import Cluster, Server, eventually, in_threads, now_ms, sql
from standby import Standby

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
READ_WAIT = 6  # seconds: long beside what a question takes


def one(name, value=1, labels=None):
    return Profile(TYPES).add(["main", name], [1, value], labels).encode()


class Replica(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.primary = Cluster()
        cls.standby = Standby(cls.primary)
        cls.plain = Server(database_url=cls.primary.url())
        cls.server = Server(
            "--read-database-url", cls.standby.url(), "--read-replica-wait", "%ds" % READ_WAIT, database_url=cls.primary.url()
        )

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.plain.stop()
        cls.standby.stop()
        cls.primary.stop()

    def reads(self, server=None):
        """{outcome: reads}, without those that did not happen"""
        metrics = (server or self.server).metrics()
        return {
            dict(labels)["outcome"]: value for (name, labels), value in metrics.items()
            if name == "hearth_replica_reads_total" and value > 0
        }

    def grown(self, before, server=None):
        return {k: v - before.get(k, 0) for k, v in self.reads(server).items() if v != before.get(k, 0)}

    def ask(self, server, service, end=None):
        end = end or now_ms() + 1000
        start = end - 3_600_000
        selector = '{service_name="%s"}' % service
        return (
            server.merge_pprof(CPU, selector, start, end),
            server.stacktraces(CPU, selector, start, end),
            server.select_series(CPU, selector, start, end, 60, ["pod"]),
        )

    def assert_same(self, server, service):
        end = now_ms() + 1000
        self.assertEqual(self.ask(server, service, end), self.ask(self.plain, service, end))

    def wait_until_asked_again(self, server=None):
        """Past the pause that a failure brought."""

        def answered():
            before = self.reads(server)
            self.ask(server or self.server, "steady")
            return "replica" in self.grown(before, server)

        eventually(answered, 40, 0.3, "a read on the replica")

    def setUp(self):
        self.server.push(one("steady"), {"__name__": "process_cpu", "service_name": "steady"})
        self.wait_until_asked_again()

    def test_acknowledged_profiles_are_in_the_next_answer(self):
        before = self.reads()
        labels = {"__name__": "process_cpu", "service_name": "fresh"}
        for k in range(50):
            start = now_ms() - 3_600_000
            self.plain.push(one("f%d" % k), {**labels, "pod": "p%d" % (k % 3)})
            flame = self.server.flamegraph(CPU, '{service_name="fresh"}', start, now_ms() + 1000)
            self.assertIn("f%d" % k, flame.functions())
            self.assertEqual(flame.total, k + 1)
        grown = self.grown(before)
        self.assertGreaterEqual(grown["replica"], 50)
        self.assert_same(self.server, "fresh")

    def test_bare_ids_are_looked_up_on_the_replica_from_the_moment_they_are_acknowledged(self):
        for k in range(1, 11):
            span = "%016x" % (k << 40)
            self.plain.push(one("f", k, {"span_id": span}), {"__name__": "process_cpu", "service_name": "spans"})
            before = self.reads()
            request = {"profileType": CPU, "spanIds": [span], "format": "SPAN_PROFILE_FORMAT_TOP"}
            (found,) = self.server.connect("hearth.v1.TraceProfileService/SpanProfile", request)["profiles"]
            self.assertEqual(int(found["total"]), k)
            self.assertEqual(set(self.grown(before)), {"replica"})

    def test_a_replica_that_does_not_replay_costs_one_wait(self):
        sql(self.standby.url(), "SELECT pg_wal_replay_pause()")
        try:
            eventually(
                lambda: sql(self.standby.url(), "SELECT pg_get_wal_replay_pause_state()") == [["paused"]],
                what="the pause",
            )
            self.plain.push(one("late"), {"__name__": "process_cpu", "service_name": "paused"})
            before = self.reads()
            began = time.monotonic()
            flame = self.server.flamegraph(CPU, '{service_name="paused"}', now_ms() - 3_600_000, now_ms() + 1000)
            took = time.monotonic() - began
            self.assertIn("late", flame.functions())
            self.assertGreater(self.grown(before)["late"], 1, "several statements could have waited")
            self.assertNotIn("replica", self.grown(before))
            self.assertGreater(took, 0.8 * READ_WAIT)
            self.assertLess(took, 2 * READ_WAIT, "the wait is paid once, not by each statement")
            self.assert_same(self.server, "paused")
        finally:
            sql(self.standby.url(), "SELECT pg_wal_replay_resume()")
        self.wait_until_asked_again()

    def test_a_replica_that_died_fails_no_query(self):
        self.standby.stop()
        try:
            before = self.reads()
            self.plain.push(one("alone"), {"__name__": "process_cpu", "service_name": "alone"})
            began = time.monotonic()
            self.assert_same(self.server, "alone")
            self.assertLess(time.monotonic() - began, 25)
            grown = self.grown(before)
            self.assertNotIn("replica", grown)
            self.assertGreater(sum(grown.values()), 0)
            self.assertEqual(self.server.http("GET", "/ready")[0], 200)
        finally:
            self.standby.start()
        self.wait_until_asked_again()

    def test_the_primary_given_as_replica_is_refused_and_answers_go_on(self):
        for url in (self.primary.url(), "host=%s user=hearth dbname=nowhere" % self.standby.directory):
            server = Server("--read-database-url", url, database_url=self.primary.url())
            self.addCleanup(server.stop)
            self.assert_same(server, "steady")
            self.assertEqual(set(self.reads(server)), {"lost"})
            self.assertIn("reads run on the primary", server.log())

    def test_a_replica_of_another_cluster_is_refused(self):
        other = Cluster(template=False)
        self.addCleanup(other.stop)
        stranger = Standby(other)
        self.addCleanup(stranger.stop)
        server = Server("--read-database-url", stranger.url(), database_url=self.primary.url())
        self.addCleanup(server.stop)
        self.assert_same(server, "steady")
        self.assertEqual(set(self.reads(server)), {"lost"})
        self.assertIn("another cluster", server.log())

    def test_reads_that_replay_cancels_are_answered_by_the_primary(self):
        """Replay does not wait for readers, and replays exclusive locks on what they read."""
        sql(self.standby.url(), "ALTER SYSTEM SET max_standby_streaming_delay = 0")
        sql(self.standby.url(), "SELECT pg_reload_conf()")
        labels = {"__name__": "process_cpu", "service_name": "conflict"}
        for k in range(60):
            self.plain.push(one("c%d" % k), {**labels, "pod": "p%d" % k})
        end = now_ms() + 1000
        wanted = self.ask(self.plain, "conflict", end)
        over = threading.Event()

        def lock():
            while not over.is_set():
                sql(self.primary.url(), "BEGIN; LOCK TABLE hearth_data.profile; COMMIT")

        def read():
            while not over.is_set():
                self.assertEqual(self.ask(self.server, "conflict", end), wanted)

        def watch():
            try:
                eventually(lambda: self.reads().get("cancelled", 0) > 0, 60, what="a cancelled read")
            finally:
                over.set()

        try:
            in_threads([lock, watch] + [read] * 4)
        finally:
            over.set()
            sql(self.standby.url(), "ALTER SYSTEM RESET max_standby_streaming_delay")
            sql(self.standby.url(), "SELECT pg_reload_conf()")
        self.wait_until_asked_again()


if __name__ == "__main__":
    unittest.main()
