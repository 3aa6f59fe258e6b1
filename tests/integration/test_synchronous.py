"""Synchronous replication: nothing is acknowledged before the standby has it, whatever happens to the wait of its commit.

While the standby is stopped, a commit is durable on the primary and waits. The wait ends early when the statement is
cancelled, by hearthd's own limit or by somebody else, and when the primary crashes; then the profile is visible on the
primary, and only there.
"""

import threading
import time
import unittest

import agents
import directing_data
import otlp
import prometheus
import tasks
from agents import Instance, Process, Rover
from questions import CPU
from server import PROFILES, PUSH, Cluster, RpcError, Server, eventually, now_ms, sql
from standby import Standby, kill9
from test_database_away import request

LEAVES_AHEAD = (
    "SELECT to_regclass('hearth_data.network_sample_' || to_char(now() AT TIME ZONE 'UTC' + '3 days', 'YYYYMMDD')) IS NOT NULL")
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


class PendingCall(Pending):
    """Any call, made by a function."""

    def call(self):
        self.message()


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
        # Without background work, which would wait for the standby as well, with locks that pushes wait for.
        cls.server = Server("--request-timeout", "10m", "--statement-timeout", "3s", "--otlp-traces", "--builder=false",
                            database_url=cls.primary.url())
        cls.addClassCleanup(cls.server.kill)
        cls.server.grpc_bytes(PUSH, request("shop", "first"), timeout=60)
        cls.n_pushed = 1
        # The leaves of the last day ahead: while these were made without a standby, pushes would wait for their lock.
        eventually(lambda: sql(cls.primary.url(), LEAVES_AHEAD) == [["t"]], 60, what="the leaves of all days ahead")

    def push_without_standby(self):
        self.standby.stop()
        self.__class__.n_pushed += 1
        self.settled = self.count_settled()
        return Pending(self.server, request("shop", self.id()))

    def waiting(self):
        """Process ids of the backends whose commits wait for the standby."""
        return [row[0] for row in sql(self.primary.url(), WAITING)]

    def committing(self):
        """Those whose transaction wrote profiles. Housekeeping may wait, too, before the push has got that far."""
        wrote = ("EXISTS (SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE l.pid = pg_stat_activity.pid"
                 " AND mode = 'RowExclusiveLock' AND relname ~ '^profile_[0-9]')")
        return [row[0] for row in sql(self.primary.url(), WAITING + " AND " + wrote)]

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
        backend = eventually(self.committing, 30, what="the wait of the commit")[0]
        sql(self.primary.url(), "SELECT pg_cancel_backend(%s)" % backend)
        self.check_that_it_waits(push)

    def test_2_the_wait_of_a_change_is_cancelled(self):
        waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%s'"
        self.standby.stop()
        change = PendingChange(self.server, {"name": "shop", "owner": "team"})
        cancelled = eventually(
            lambda: sql(self.primary.url(), "SELECT pg_cancel_backend(pid), query_start " + waiting % "%COMMIT"), 30,
            what="the wait of the commit")
        self.assertEqual(cancelled[0][0], "t")
        later = " AND query_start > '%s'" % cancelled[0][1]
        eventually(lambda: change.outcome or sql(self.primary.url(), "SELECT 1 " + waiting % "%COMMIT" + later), 30,
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

    def end_without_standby(self, call):
        """The outcome of a call while all waits for the standby are cancelled."""
        pending = PendingCall(self.server, call)

        def cancel():
            sql(self.primary.url(), WAITING.replace("pid", "pg_cancel_backend(pid)", 1))
            return pending.outcome

        return eventually(cancel, 30, what="the end of the call")

    def test_2_no_change_is_acknowledged_that_the_standby_may_lack(self):
        connect, rover = self.server.connect, Rover(self.server)
        setting = {"name": "pluginSettings", "value": "1", "modifiedAt": "5000"}
        limit = lambda value: {"changes": [{"name": "max-compared-pairs", "value": value}]}
        rule = {"metricName": "cost", "matchers": ['{__profile_type__="%s"}' % CPU], "groupBy": ["pod"]}
        erase = {"labelSelector": '{service_name="gone"}', "start": "0", "end": str(now_ms()), "requestedBy": "the test"}
        upload = {"fileName": "a", "sizeBytes": "1", "partBytes": 65536, "labels": [{"name": "service_name", "value": "shop"}]}
        export = otlp.request(({"service.name": "shop"}, [otlp.span(otlp.new_trace())]))
        token = {"name": "a", "grants": [{"tenant": "anonymous", "role": "viewer"}]}

        self.server.grpc_bytes(PUSH, request("gone", "gone"), timeout=60)
        self.__class__.n_pushed += 1
        rover.report(Process("shop", "pod", "main"))
        traced = Instance(self.server, "shop", "traced")
        traced.report()
        task, trace = tasks.create(self.server), tasks.create(self.server, "TRACE", endpoint="/slow")
        traced.query_tasks(Instance.TRACE)
        part, whole = ({"uploadId": connect("hearth.v1.UploadService/CreateUpload", upload)["uploadId"], "data": "eA=="}
                       for _ in range(2))
        connect("hearth.v1.UploadService/PutPart", whole)
        connect("settings.v1.SettingsService/Set", {"setting": setting})
        connect("hearth.v1.AdminService/SetLimits", limit("7"))
        send_span = lambda: self.server.grpc_bytes(otlp.EXPORT, export, timeout=120)
        send_snapshot = lambda: traced.send_snapshots(agents.snapshot(trace, "segment", 0, now_ms() // 60_000 * 60_000, ["main"]))
        send_span()
        send_snapshot()

        changes = {
            "a task": lambda: tasks.create(self.server, "TRACE", service="gone"),
            "a task that is handed out": rover.query_tasks,
            "a task that is cancelled": lambda: connect(tasks.TASKS + "CancelTask", {"taskId": task}),
            "a policy": lambda: directing_data.set_policy(self.server, "shop", [directing_data.CPU]),
            "a token": lambda: connect("hearth.v1.AccessService/CreateToken", token),
            "a deletion": lambda: connect("hearth.v1.AdminService/Erase", {**erase, "expectedSeries": "1"}),
            "a limit that is removed": lambda: connect("hearth.v1.AdminService/SetLimits", limit("default")),
            "a setting that is removed": lambda: connect("settings.v1.SettingsService/Delete", {"name": setting["name"]}),
            "a recording rule": lambda: connect("settings.v1.RecordingRulesService/UpsertRecordingRule", rule),
            "a part of an upload": lambda: connect("hearth.v1.UploadService/PutPart", part),
            "an upload that is finished": lambda: connect("hearth.v1.UploadService/FinishUpload", {"uploadId": whole["uploadId"]}),
            "a process of an agent": lambda: Rover(self.server).report(Process("new", "pod", "main")),
            "an instance": lambda: Instance(self.server, "newer", "pod").report(),
            "a span, repeated": send_span,
            "a snapshot, repeated": send_snapshot,
        }
        self.standby.stop()
        for name, change in changes.items():
            with self.subTest(name):
                self.assertEqual(self.end_without_standby(change), "unavailable")

        # These are made on the primary, and change nothing when they are repeated.
        for name in ("a limit that is removed", "a setting that is removed", "an upload that is finished"):
            with self.subTest(name + ", repeated"):
                self.assertEqual(self.end_without_standby(changes[name]), "unavailable")
        self.standby.start()
        changes["a setting that is removed"]()

        # After a deletion, the next push looks its series up again, and may write to the catalogue.
        self.server.grpc_bytes(PUSH, request("shop", "later"), timeout=60)
        self.__class__.n_pushed += 1

    def test_3_the_primary_crashes_during_the_wait(self):
        push = self.push_without_standby()
        eventually(self.committing, 30, what="the wait of the commit")
        kill9(self.primary)
        self.primary.start()
        self.check_that_it_waits(push)

        kill9(self.primary)
        sql(self.standby.url(), "SELECT pg_promote()")
        self.assertEqual(self.stored(self.standby), self.n_pushed)


if __name__ == "__main__":
    unittest.main()
