"""test_failover with Patroni and etcd: the machine of the primary dies under load, and Patroni promotes the other one.

It runs where `patroni` and `etcd` are installed (Debian: patroni, python3-etcd, etcd-server), and says so where not.
HEARTH_FAILOVERS kills, as in test_failover.py.
"""

import random
import time
import unittest

from failover_load import KILLS, FailoverLoad
from patroni_pair import Pair, is_installed, wait_for_role
from server import eventually, note

LOAD_SECONDS = 1.0
if not is_installed():
    note("patroni or etcd is not installed: failovers by Patroni were NOT tried")


@unittest.skipUnless(is_installed(), "patroni or etcd is not installed")
class Patroni(FailoverLoad):
    def serve(self, **dcs):
        self.pair = Pair(**dcs)
        self.addCleanup(self.pair.stop)
        self.primary, self.standby = self.pair.nodes
        self.begin(self.pair.hearth_url())

    def kill_primary(self):
        self.primary.kill9()
        self.primary, self.standby = self.standby, self.primary
        return time.monotonic()

    def test_with_synchronous_mode_nothing_acknowledged_is_lost(self):
        self.serve(synchronous_mode=True, synchronous_mode_strict=True)
        pauses = []
        for _ in range(KILLS):
            eventually(self.standby.is_synchronous, 60, 0.2, what="a synchronous standby")
            self.progress()
            time.sleep(LOAD_SECONDS * random.random())
            killed = self.kill_primary()
            wait_for_role(self.primary, "primary")
            # Strict: commits of the new primary wait for a standby.
            self.standby.start()
            self.progress()
            pauses.append(time.monotonic() - killed)
        self.assertEqual(self.finish("Patroni, synchronous", set(), pauses), set())

    def test_without_it_only_commits_that_the_standby_lacked_are_lost(self):
        # As much as the test writes: Patroni does not promote a standby that lacks more.
        self.serve(maximum_lag_on_failover=1 << 30)
        at_risk, pauses = set(), []
        for _ in range(KILLS):
            wait_for_role(self.standby, "standby")
            self.wait_for_state("async")
            self.progress()
            replicated = self.wait_for_replay()
            self.standby.stop()
            self.progress()
            killed = self.kill_primary()
            # Last acknowledgements may be on their way to the pushers.
            time.sleep(0.5)
            at_risk |= self.acknowledged() - replicated
            self.primary.start()
            wait_for_role(self.primary, "primary")
            self.progress()
            pauses.append(time.monotonic() - killed)
            self.standby.start()
        self.assertNotEqual(self.finish("Patroni, asynchronous", at_risk, pauses), set(), "nothing was lost: nothing was tried")


if __name__ == "__main__":
    unittest.main()
