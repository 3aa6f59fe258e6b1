"""Synchronous replication: no push is acknowledged before the standby has it, whatever happens to the wait of its commit.

While the standby is stopped, a commit is durable on the primary and waits. The wait ends early when the statement is
cancelled, by hearthd's own limit or by somebody else, and when the primary crashes; then the profile is visible on the
primary, and only there.
"""

import threading
import time
import unittest

import otlp
import prometheus
from server import PROFILES, PUSH, Cluster, RpcError, Server, eventually, sql
from standby import Standby, kill9
from test_database_away import request

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'hearthd'"


class Pending(threading.Thread):
    """A push that is under way; `outcome` is "ok" or the code of its error."""

    def __init__(self, server, message, seconds=600):
        super().__init__(daemon=True)
        self.server, self.message, self.seconds, self.outcome = server, message, seconds, None
        self.start()

    def call(self):
        self.server.grpc_bytes(PUSH, self.message, timeout=self.seconds)

    def run(self):
        try:
            self.call()
            self.outcome = "ok"
        except RpcError as error:
            self.outcome = error.code


class PendingChange(Pending):
    """A change of an application, which is one transaction."""

    def call(self):
        self.server.connect("hearth.v1.ApplicationService/Set", self.message, timeout=self.seconds)


class PendingSpan(Pending):
    """A span that is exported."""

    def call(self):
        self.server.grpc_bytes(otlp.EXPORT, self.message, timeout=self.seconds)


class Synchronous(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.primary = Cluster()
        cls.standby = Standby(cls.primary)
        for cluster in (cls.primary, cls.standby):
            cls.addClassCleanup(cluster.stop)
        sql(cls.primary.url(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
        sql(cls.primary.url(), "SELECT pg_reload_conf()")
        cls.server = Server("--request-timeout", "10m", "--statement-timeout", "3s", "--otlp-traces",
                            database_url=cls.primary.url())
        cls.addClassCleanup(cls.server.kill)
        cls.server.grpc_bytes(PUSH, request("shop", "first"), timeout=60)
        cls.n_pushed = 1

    def push_without_standby(self):
        self.standby.stop()
        self.__class__.n_pushed += 1
        self.settled = self.count_settled()
        return Pending(self.server, request("shop", self.id()))

    def waiting(self):
        """Process ids of the backends whose commits wait for the standby."""
        return [row[0] for row in sql(self.primary.url(), WAITING)]

    def stored(self, cluster):
        return int(sql(cluster.url(), "SELECT count(*) FROM " + PROFILES)[0][0])

    def count_settled(self):
        return prometheus.value(self.server.metrics(), "hearth_commit_settled_total")

    def check_that_it_waits(self, push):
        """The primary shows the profile. Its push, and a repeated one, are acknowledged only with the standby."""
        eventually(lambda: self.stored(self.primary) == self.n_pushed, 30, what="the commit on the primary")
        eventually(self.waiting, 30, what="a second wait")
        repeated = Pending(self.server, request("shop", self.id()))
        time.sleep(2)
        self.assertEqual((push.outcome, repeated.outcome), (None, None))

        self.standby.start()
        for pending in (push, repeated):
            pending.join(120)
            self.assertEqual(pending.outcome, "ok")
        self.assertGreater(self.count_settled(), self.settled)

    def test_1_the_limit_of_statements_ends_the_wait(self):
        self.check_that_it_waits(self.push_without_standby())

    def test_2_somebody_cancels_the_wait(self):
        push = self.push_without_standby()
        backend = eventually(self.waiting, 30, what="the wait of the commit")[0]
        sql(self.primary.url(), "SELECT pg_cancel_backend(%s)" % backend)
        self.check_that_it_waits(push)

    def test_2_the_wait_of_a_change_is_cancelled(self):
        waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%s'"
        self.standby.stop()
        change = PendingChange(self.server, {"name": "shop", "owner": "team"})
        cancelled = eventually(
            lambda: sql(self.primary.url(), "SELECT pg_cancel_backend(pid), query " + waiting % "COMMIT"), 30,
            what="the wait of the commit")
        self.assertEqual(cancelled[0][0], "t")
        eventually(lambda: change.outcome or sql(self.primary.url(), "SELECT 1 " + waiting % "%settled%COMMIT"), 30,
                   what="a second wait")
        self.assertIsNone(change.outcome)
        self.standby.start()
        change.join(120)
        self.assertEqual(change.outcome, "ok")

    def test_2_the_wait_of_spans_is_cancelled(self):
        def export():
            return otlp.request(({"service.name": "shop"}, [otlp.span(otlp.new_trace())]))

        self.server.grpc_bytes(otlp.EXPORT, export())  # the service and the partition exist from here on
        self.standby.stop()
        pending = PendingSpan(self.server, export())
        backend = eventually(self.waiting, 30, what="the wait of the commit")[0]
        sql(self.primary.url(), "SELECT pg_cancel_backend(%s)" % backend)
        time.sleep(2)  # there is a second wait, of the same backend or another
        self.assertIsNone(pending.outcome)
        self.standby.start()
        pending.join(120)
        self.assertEqual(pending.outcome, "ok")

    def test_3_the_primary_crashes_during_the_wait(self):
        push = self.push_without_standby()
        eventually(self.waiting, 30, what="the wait of the commit")
        kill9(self.primary)
        self.primary.start()
        self.check_that_it_waits(push)

        kill9(self.primary)
        sql(self.standby.url(), "SELECT pg_promote()")
        self.assertEqual(self.stored(self.standby), self.n_pushed)


if __name__ == "__main__":
    unittest.main()
