"""A database that a newer hearthd has migrated: it is read, and nothing is written."""

import time
import unittest

from pprof import Profile
from questions import CPU
from server import Cluster, RpcError, Server, eventually, now_ms, sql

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
LABELS = {"__name__": "process_cpu", "service_name": "s"}
REASON = 'the database has migration "9999_of_tomorrow.sql", which this hearthd does not know'
TOMORROW = """INSERT INTO hearth_data.migration (number, name, checksum) VALUES (9999, '9999_of_tomorrow.sql', 'x');
              ALTER TABLE hearth_data.tenant ADD COLUMN of_tomorrow int NOT NULL DEFAULT 1"""
COUNTS = "SELECT (SELECT count(*) FROM hearth_data.writer), (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables)"


class NewerSchema(unittest.TestCase):
    def check(self, *options, metadata=()):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        server = Server(*options, database_url=cluster.url())
        self.addCleanup(server.stop)
        server.push(Profile(TYPES).add(["main", "work"], [1, 5]).encode(), LABELS, metadata=metadata)
        whole = (now_ms() - 3_600_000, now_ms() + 60_000)
        before = server.flamegraph(CPU, "{}", *whole, metadata=metadata)
        self.assertEqual(before.total, 5)

        # An older hearthd starts on the schema of a newer one.
        self.assertEqual(server.terminate(), 0)
        for statement in TOMORROW.split(";"):
            sql(cluster.url(), statement)
        sql(cluster.url(), "SELECT pg_stat_force_next_flush()")  # PostgreSQL counts what an idle session wrote seconds later
        server.start()
        status, _, body = server.http("GET", "/ready")
        self.assertEqual(status, 200)
        self.assertIn(REASON, body.decode())
        written = sql(cluster.url(), COUNTS)

        # It answers, with the profiles that are there.
        self.assertEqual(server.flamegraph(CPU, "{}", *whole, metadata=metadata).total, 5)
        self.assertEqual(server.label_values("service_name", *whole, metadata=metadata), ["s"])

        # It refuses to write, in memory and by statements: known series, new ones, settings, tasks.
        profile = Profile(TYPES).add(["main"], [1, 1]).encode()
        for labels in (LABELS, dict(LABELS, service_name="new")):
            self.refused(lambda labels=labels: server.push(profile, labels, metadata=metadata))
        headers = dict(metadata)
        self.refused(lambda: server.connect("settings.v1.SettingsService/Set", {"setting": {"name": "a", "value": "b", "modifiedAt": "1"}}, headers=headers))
        time.sleep(3)
        self.assertEqual(sql(cluster.url(), COUNTS), written)
        self.assertEqual(server.http("GET", "/ready")[0], 200)
        noise = [line for line in server.log().splitlines() if "of_tomorrow" in line]
        self.assertLess(len(noise), 20, noise)

        # With the schema that it knows, it writes again.
        self.assertEqual(server.terminate(), 0)
        sql(cluster.url(), "DELETE FROM hearth_data.migration WHERE number = 9999")
        server.start()
        server.push(profile, LABELS, metadata=metadata)
        eventually(lambda: server.flamegraph(CPU, "{}", *whole, metadata=metadata).total == 6, what="the push")

    def refused(self, write):
        with self.assertRaises(RpcError) as raised:
            write()
        self.assertIn(REASON, str(raised.exception))
        self.assertEqual(raised.exception.code, "unavailable")

    def test_a_newer_schema_serves_one_tenant(self):
        self.check()

    def test_a_newer_schema_serves_several_tenants(self):
        self.check("--multitenancy", metadata=(("x-scope-orgid", "one"),))


if __name__ == "__main__":
    unittest.main()
