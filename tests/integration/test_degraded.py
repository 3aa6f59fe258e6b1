"""What works only in part says so: clocks that differ, a disk that is full."""

import json
import unittest

from pprof import Profile
from server import Cluster, RpcError, Server, eventually, now_ms, sql

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
HOUR = 3_600_000

# The database's clock as statements see it.
CLOCK = """
    CREATE SCHEMA IF NOT EXISTS elsewhere;
    CREATE OR REPLACE FUNCTION elsewhere.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
        $$ SELECT pg_catalog.clock_timestamp() + interval '%d minutes' $$;
    ALTER DATABASE postgres SET search_path = elsewhere, pg_catalog, public"""


def profile(at_ms):
    return Profile(TYPES, time_ns=at_ms * 1_000_000).add(["main"], [1, 10]).encode()


class Degraded(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)

    def start(self, *options):
        server = Server(*options, database_url=self.cluster.url())
        self.addCleanup(server.stop)
        return server

    def push(self, server, at_ms):
        return server.push(profile(at_ms), {"__name__": "process_cpu", "service_name": "s"})

    def ready(self, server):
        status, _, text = server.http("GET", "/ready")
        _, _, body = server.http("GET", "/ready", headers={"Accept": "application/json"})
        return status, text.decode(), json.loads(body)  # of two moments

    def test_profiles_of_now_are_taken_by_a_server_whose_clock_is_two_hours_behind(self):
        sql(self.cluster.url(), CLOCK % 120)
        server = self.start()
        self.assertIn("this server's clock is 2h behind the database's", server.log())
        status, text, body = self.ready(server)
        self.assertEqual(status, 200)
        self.assertIn("ready, degraded: this server's clock is 2h behind", text)
        self.assertEqual((body["ready"], body["degraded"]), (True, True))
        self.assertIn("2h behind", body["reasons"][0])

        # Either clock may allow it: here "now" of the other one is two hours from now.
        self.push(server, now_ms() + 2 * HOUR)
        self.push(server, now_ms())
        with self.assertRaises(RpcError) as caught:
            self.push(server, now_ms() + 3 * HOUR)
        self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertIn("s behind the database's", caught.exception.message)

    def test_a_server_whose_clock_is_ahead_takes_what_the_database_would(self):
        sql(self.cluster.url(), CLOCK % -120)
        server = self.start("--reject-older-than", "1h")
        self.assertIn("this server's clock is 2h ahead of the database's", server.log())
        self.push(server, now_ms() - 2 * HOUR)
        with self.assertRaises(RpcError) as caught:
            self.push(server, now_ms() - 4 * HOUR)
        self.assertIn("s ahead of the database's", caught.exception.message)

    def test_clocks_that_agree_are_not_worth_a_word(self):
        server = self.start()
        self.assertEqual(self.ready(server), (200, "ready", {"ready": True, "degraded": False, "reasons": []}))
        self.assertNotIn("clock", server.log())

    def test_a_full_disk_is_reported_with_a_time_to_retry(self):
        server = self.start("--max-disk-bytes", "1m")
        status, text, body = eventually(lambda: (found := self.ready(server))[1] != "ready" and found)
        self.assertEqual(status, 200)
        self.assertIn("max-disk-bytes", text)
        self.assertIn("max-disk-bytes", body["reasons"][0])
        with self.assertRaises(RpcError) as caught:
            self.push(server, now_ms())
        self.assertEqual(caught.exception.code, "resource_exhausted")
        self.assertEqual(caught.exception.metadata["grpc-retry-pushback-ms"], "30000")
        status, found, answer = server.http("POST", "/ingest?name=s", b"main;work 3\n", {"Content-Type": "text/plain"})
        self.assertEqual((status, found["retry-after"]), (429, "30"), answer)


if __name__ == "__main__":
    unittest.main()
