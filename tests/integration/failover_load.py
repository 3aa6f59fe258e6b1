"""Load over a pair of PostgreSQL clusters that change places, and the comparison at its end (test_failover, test_patroni).

hearthd knows the hosts of both and finds the primary. Nothing starts it again.
"""

import collections
import os
import unittest

import prometheus
from pprof import Decoded
from questions import CPU
from server import Server, eventually, note, now_ms, sql
from test_crash import Pusher

KILLS = int(os.environ.get("HEARTH_FAILOVERS") or ("10" if os.environ.get("HEARTH_TEST_LONG") else "2"))
STREAMS = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming' AND application_name <> 'pg_basebackup'"
NUMBERS = (0, 1, 3, 4)  # of pushers: from 3 on, they repeat pushes that were not acknowledged


class FailoverLoad(unittest.TestCase):
    """A subclass sets primary and standby, each with url(), then begins the load."""

    n_services = 2

    def begin(self, url):
        self.server = Server(database_url=url)
        self.addCleanup(self.server.kill)
        self.start_ms = now_ms()
        self.pushers = [Pusher(k, self.server) for k in NUMBERS]
        for pusher in self.pushers:
            pusher.services = self.n_services
            pusher.start()

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
            lambda: sql(self.primary.url(), STREAMS) == [[state]], 60, what="a standby that is " + state,
        )

    def wait_for_replay(self):
        """Until the standby has everything that is acknowledged now; returns that."""
        acknowledged = self.acknowledged()
        end = sql(self.primary.url(), "SELECT pg_current_wal_insert_lsn()")[0][0]
        eventually(
            lambda: sql(self.standby.url(), "SELECT pg_last_wal_replay_lsn() >= '%s'" % end) == [["t"]], 60, what="the replay"
        )
        return acknowledged

    def finish(self, name, at_risk, pauses):
        """Stop the load, and compare the stored profiles with those that were pushed."""
        for pusher in self.pushers:
            pusher.stopping.set()
        for pusher in self.pushers:
            pusher.join(60)
            self.assertFalse(pusher.is_alive())
        self.server.wait_ready()
        # Pushes to another node may go on before the server knows of the last promotion.
        eventually(lambda: prometheus.value(self.server.metrics(), "hearth_database_replaced_total") == KILLS, 60, what="each promotion")
        self.server.wait_ready()
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
