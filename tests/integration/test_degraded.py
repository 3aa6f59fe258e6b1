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
        return status, text.decode(), json.loads(body)

    def test_a_full_disk_is_told_with_a_time_to_come_again(self):
        server = self.start("--max-disk-bytes", "1m")
        status, text, body = eventually(lambda: (found := self.ready(server))[2]["degraded"] and found)
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
