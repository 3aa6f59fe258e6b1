"""The primary is killed under load and its standby promoted: what was acknowledged is there, nothing is stored twice.

HEARTH_FAILOVERS kills (2; 10 with HEARTH_TEST_LONG) with synchronous and with asynchronous replication. Two clusters
change places: hearthd knows the hosts of both and finds the primary. As with a supervisor, a hearthd that ends is
started again.
"""

import collections
import os
import random
import threading
import time
import unittest

from pprof import Decoded
from questions import CPU
from server import Cluster, Server, eventually, note, now_ms, sql
from standby import Standby, follow, kill9
from test_crash import Pusher

KILLS = int(os.environ.get("HEARTH_FAILOVERS") or ("10" if os.environ.get("HEARTH_TEST_LONG") else "2"))
NUMBERS = (0, 1, 3, 4)  # of pushers: from 3 on, they repeat pushes that were not acknowledged
LOAD_SECONDS = 1.0


class Supervisor(threading.Thread):
    """Starts hearthd again when it has ended with a failure, as Restart=on-failure does."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.codes = server, []
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(0.05):
            code = self.server.process.poll()
            if code is not None:
                self.codes.append(code)
                self.server.start(wait=False)


class Failover(unittest.TestCase):
    def setUp(self):
        self.primary = Cluster()
        self.standby = Standby(self.primary)
        for cluster in (self.primary, self.standby):
            self.addCleanup(cluster.stop)
        self.server = Server(
            database_url="host=%s,%s user=hearth dbname=postgres" % (self.primary.directory, self.standby.directory)
        )
        self.addCleanup(self.server.kill)
        self.start_ms = now_ms()
        self.supervisor = Supervisor(self.server)
        self.pushers = [Pusher(k, self.server) for k in NUMBERS]
        for thread in [self.supervisor] + self.pushers:
            thread.start()

    def acknowledged(self):
        return set().union(*(set(p.acknowledged) for p in self.pushers))

    def progress(self):
        """Everybody began a push that was acknowledged."""
        before = [len(p.acknowledged) for p in self.pushers]
        eventually(
            lambda: all(len(p.acknowledged) > b + 1 for p, b in zip(self.pushers, before)), 120, what="a push by everybody"
        )

    def wait_for_state(self, state):
        eventually(
            lambda: sql(self.primary.url(), "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'") == [[state]],
            60, what="a standby that is " + state,
        )

    def wait_for_replay(self):
        """Until the standby has everything that is acknowledged now; returns that."""
        acknowledged = self.acknowledged()
        end = sql(self.primary.url(), "SELECT pg_current_wal_insert_lsn()")[0][0]
        eventually(
            lambda: sql(self.standby.url(), "SELECT pg_last_wal_replay_lsn() >= '%s'" % end) == [["t"]], 60, what="the replay"
        )
        return acknowledged

    def promote(self):
        sql(self.standby.url(), "SELECT pg_promote()")
        self.primary, self.standby = self.standby, self.primary

    def finish(self, name, at_risk, pauses):
        """Stop the load, and compare the stored profiles with those that were pushed."""
        for pusher in self.pushers:
            pusher.stopping.set()
        for pusher in self.pushers:
            pusher.join(60)
            self.assertFalse(pusher.is_alive())
        self.supervisor.stopping.set()
        self.supervisor.join()
        self.server.wait_ready()
        self.assertEqual(self.supervisor.codes, [1] * KILLS)
        self.assertFalse(sum((p.unexpected for p in self.pushers), collections.Counter()))

        acknowledged = self.acknowledged()
        doubtful = set().union(*(p.doubtful for p in self.pushers))
        merged = Decoded(self.server.merge_pprof(CPU, "{}", self.start_ms, now_ms() + 1000))
        counted = {stack[0][0]: value for stack, value in merged.by_stack(0).items()}
        lost = acknowledged - set(counted)
        note(
            "%s: %d kills, %d acknowledged, %d of them lost, %d in doubt; seconds until all pushed again: %s"
            % (name, KILLS, len(acknowledged), len(lost), len(doubtful), ", ".join("%.1f" % p for p in pauses))
        )
        self.assertEqual({n: v for n, v in counted.items() if v != 1}, {}, "doubled")
        self.assertEqual(set(counted) - acknowledged - doubtful, set(), "never pushed")
        self.assertEqual(lost - at_risk, set(), "lost, although a standby had them")
        series = self.server.select_series(CPU, "{}", self.start_ms, now_ms() + 60_000, 60, ["pusher"])
        stored = collections.Counter(name.split("-")[1] for name in counted)
        by_series = {dict(labels)["pusher"]: int(sum(v for _, v in points)) for labels, points in series}
        self.assertEqual(by_series, dict(stored))
        self.server.stop()
        return lost

    def test_with_synchronous_replication_nothing_acknowledged_is_lost(self):
        for cluster in (self.primary, self.standby):
            sql(cluster.url(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
            sql(cluster.url(), "SELECT pg_reload_conf()")
        pauses = []
        for _ in range(KILLS):
            self.wait_for_state("sync")
            self.progress()
            time.sleep(LOAD_SECONDS * random.random())
            kill9(self.primary)
            killed = time.monotonic()
            self.promote()
            # Commits of the new primary wait for a standby.
            follow(self.standby, self.primary)
            self.progress()
            pauses.append(time.monotonic() - killed)
        self.assertEqual(self.finish("synchronous", set(), pauses), set())

    def test_with_asynchronous_replication_only_what_the_standby_lacked_is_lost(self):
        at_risk, pauses = set(), []
        for _ in range(KILLS):
            self.wait_for_state("async")
            self.progress()
            replicated = self.wait_for_replay()
            self.standby.stop()
            self.progress()
            kill9(self.primary)
            killed = time.monotonic()
            # Last acknowledgements may be on their way to the pushers.
            time.sleep(0.5)
            at_risk |= self.acknowledged() - replicated
            self.standby.start()
            self.promote()
            self.progress()
            pauses.append(time.monotonic() - killed)
            follow(self.standby, self.primary)
        self.assertNotEqual(self.finish("asynchronous", at_risk, pauses), set(), "nothing was lost: nothing was tried")


if __name__ == "__main__":
    unittest.main()
