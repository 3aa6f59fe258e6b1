"""An idle server asks its database seldom."""

import time
import unittest

from server import Server

COUNT = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


class IdlePolls(unittest.TestCase):
    def rate(self, *options):
        """Transactions a second of an idle server, half a minute after its start."""
        server = Server(*options)
        self.addCleanup(server.stop)
        time.sleep(18)  # the work of the start
        count = lambda: int(server.sql(COUNT)[0][0])
        began, first = time.monotonic(), count()
        time.sleep(20)
        return (count() - first) / (time.monotonic() - began)

    def test_an_idle_server_runs_fewer_than_seven_statements_a_second(self):
        self.assertLess(self.rate(), 7)  # 4.4 were measured

    def test_an_idle_server_with_authentication_runs_four_more_statements(self):
        self.assertLess(self.rate("--auth", "token"), 11)


if __name__ == "__main__":
    unittest.main()
