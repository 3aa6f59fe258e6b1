"""The primary is killed under load and its standby promoted: what was acknowledged is there, nothing is stored twice.

HEARTH_FAILOVERS kills (2; 10 with HEARTH_TEST_LONG) with synchronous and with asynchronous replication. The test promotes
the standby itself; in test_patroni.py Patroni does.
"""

import random
import time
import unittest

from failover_load import KILLS, FailoverLoad
from server import Cluster, sql
from standby import Standby, follow, kill9

LOAD_SECONDS = 1.0


class Failover(FailoverLoad):
    def setUp(self):
        self.primary = Cluster()
        self.standby = Standby(self.primary)
        for cluster in (self.primary, self.standby):
            self.addCleanup(cluster.stop)
        self.begin("host=%s,%s user=hearth dbname=postgres" % (self.primary.directory, self.standby.directory))

    def promote(self):
        sql(self.standby.url(), "SELECT pg_promote()")
        self.primary, self.standby = self.standby, self.primary

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

    def test_asynchronous_replication_loses_only_commits_that_the_standby_lacked(self):
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
