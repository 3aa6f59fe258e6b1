"""Transactions of others that stay open, in this database or another one of the cluster, do not hold background work up.

HEARTH_STRANGERS_SECONDS keeps them open longer (0): from 600 on, buckets end meanwhile for sure.
"""

import os
import time
import unittest

import prometheus
from pprof import Profile
from questions import CPU
from server import Cluster, Server, Session, eventually, note, now_ms, sql

SECONDS = int(os.environ.get("HEARTH_STRANGERS_SECONDS", "0"))
MINUTE, HOUR = 60_000, 3_600_000
BUCKET = 10 * MINUTE
MS = 1_000_000


class Strangers(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        sql(self.cluster.url(), "CREATE DATABASE strangers")
        self.server = Server(
            "--builder-interval", "100ms", "--rollup-grace", "0", "--compact-after", "0", database_url=self.cluster.url()
        )
        self.addCleanup(self.server.stop)
        self.n_pushed = 0

    def open(self, database):
        """A transaction that has written, and a snapshot older than all that comes: what holds vacuum up as well."""
        session = Session(self.cluster.url(database))
        self.addCleanup(session.close)
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ; CREATE TABLE public.stranger (a int); SELECT count(*) FROM stranger")
        self.assertRegex(session.run("SELECT pg_current_xact_id_if_assigned()")[0], r"^\d+$")
        return session

    def push(self, service, ts):
        profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=ts * MS).add(["main"], [1, 1])
        self.server.push(profile.encode(), {"__name__": "process_cpu", "service_name": service})
        self.n_pushed += 1

    def state(self, service):
        """(built_to, compacted_to) in ms, (0, 0) when nothing is."""
        rows = self.server.sql(
            "SELECT built_to / %d, compacted_to / %d FROM hearth_data.roll_state JOIN hearth_data.service USING (service_id)"
            " WHERE name = '%s'" % (MS, MS, service)
        )
        return tuple(int(cell) for cell in rows[0]) if rows else (0, 0)

    def lag_ms(self):
        """What people see; the server's own number must not be less."""
        lag = int(self.server.connect("hearth.v1.AdminService/Status", {}).get("lagMs", 0))
        gauge = prometheus.value(self.server.metrics(), "hearth_rollup_lag_seconds") * 1000
        return max(lag, gauge)

    def total(self):
        return self.server.flamegraph(CPU, "{}", now_ms() - 6 * HOUR, now_ms() + MINUTE).total

    def test_buckets_are_closed_while_foreign_transactions_are_open(self):
        self.push("before", now_ms() - 2 * HOUR)
        strangers = [self.open("strangers"), self.open("postgres")]
        opened = now_ms()
        # Everything from here on has a newer transaction id than theirs.
        first = self.server.sql("SELECT pg_current_xact_id()")[0][0]
        self.assertGreater(int(first), int(strangers[0].run("SELECT pg_current_xact_id_if_assigned()")[0]))
        for minutes in range(0, 180, 7):
            self.push("after", now_ms() - minutes * MINUTE)
        edge = now_ms() // BUCKET * BUCKET
        eventually(lambda: self.state("after")[0] >= edge and self.state("before")[0] >= edge, 30, what="building")
        # Late ones are folded, hours are compacted, a rebuild is built again.
        for minutes in range(20, 180, 11):
            self.push("after", now_ms() - minutes * MINUTE)
        eventually(lambda: self.server.sql("SELECT count(*) FROM hearth_data.profile_late") == [["0"]], 30, what="folding")
        eventually(lambda: self.state("after")[1] >= edge // HOUR * HOUR, 30, what="compaction")
        self.server.connect("hearth.v1.AdminService/Rebuild", {"allServices": True, "fromMs": str(opened - 2 * HOUR)})
        eventually(lambda: self.state("after")[0] >= edge, 30, what="building again")
        self.assertLess(self.lag_ms(), MINUTE)
        self.assertEqual(self.total(), self.n_pushed)
        self.stay(opened)
        for session in strangers:  # they were there all the time
            self.assertEqual(session.run("SELECT count(*) FROM stranger; ROLLBACK"), ["0"])

    def stay(self, opened):
        first, worst = self.state("after")[0], 0
        while now_ms() < opened + SECONDS * 1000:
            self.push("after", now_ms())
            worst = max(worst, self.lag_ms())
            self.assertLess(worst, MINUTE)
            time.sleep(1)
        if SECONDS >= 600:
            self.assertGreater(self.state("after")[0], first)
            self.assertEqual(self.total(), self.n_pushed)
        if SECONDS > 0:
            note(
                "open for %d s: %d buckets closed, lag at most %d ms"
                % (SECONDS, (self.state("after")[0] - first) // BUCKET, worst)
            )


if __name__ == "__main__":
    unittest.main()
