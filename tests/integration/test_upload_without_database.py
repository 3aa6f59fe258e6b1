"""`hearth upload` while the database or the server is away: what the user is told, and that the same command can be repeated."""

import os
import re
import signal
import unittest

from server import PROFILES, Cluster, Server, eventually, temporary_directory
from test_cli import OK, SERVER, hearth, shop

AGAIN = "run the same command again: within an hour, it is stored once"
OLD = 1_600_000_000 * 10**9  # such files are stored as of now, each run of another one


class UploadWithoutDatabase(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.server = Server(database_url=self.cluster.url())
        self.addCleanup(self.server.stop)
        self.path = os.path.join(temporary_directory(), "cpu.pb.gz")
        self.first = os.path.join(os.path.dirname(self.path), "first.pb.gz")
        for path, value in ((self.first, 1), (self.path, 2)):
            with open(path, "wb") as file:
                file.write(shop(OLD).add(["main", "more"], [value, value]).encode())
        self.assertEqual(self.upload(self.first).code, OK)

    def upload(self, path, *options):
        url = "http://127.0.0.1:%d" % self.server.port
        return hearth("upload", path, "--label", "service_name=shop", *options, env={"HEARTH_URL": url})

    def n_rows(self):
        return int(self.server.sql("SELECT count(*) FROM " + PROFILES)[0][0])

    def test_the_command_reports_its_outcome_and_its_repetition_stores_one_profile(self):
        self.cluster.stop()
        eventually(lambda: self.server.http("GET", "/ready")[0] == 503, what="the server without its database")
        for _ in range(2):
            done = self.upload(self.path, "--timeout=12s")
            self.assertEqual((done.code, done.out), (SERVER, ""), done.err)
            waiting, end = done.err.splitlines()[-2:]
            self.assertRegex(waiting, r"^%s: not acknowledged yet, still waiting: .*connect" % re.escape(self.path))
            self.assertRegex(end, r"^hearth: %s: .*stored.*; %s$" % (re.escape(self.path), AGAIN))
        self.cluster.start()
        eventually(lambda: self.server.http("GET", "/ready")[0] == 200, what="the server with its database")
        for _ in range(2):
            self.assertEqual(self.upload(self.path).code, OK)
        self.assertIn("stored already", self.upload(self.path).out)
        self.assertEqual(self.n_rows(), 2)

    def test_a_server_that_does_not_answer_may_still_store_the_profile(self):
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            done = self.upload(self.path, "--timeout=12s")
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        self.assertEqual((done.code, done.out), (SERVER, ""))
        waiting, end = done.err.splitlines()[-2:]
        self.assertEqual(waiting, self.path + ": not acknowledged yet, still waiting")
        self.assertRegex(end, r"^hearth: %s: no answer from \S+ within 12 s; the profile may still be stored; %s$" % (re.escape(self.path), AGAIN))
        self.assertEqual(self.upload(self.path).code, OK)
        self.assertEqual(self.n_rows(), 2)

    def test_a_killed_server_is_no_reason_for_a_second_profile(self):
        self.assertEqual(self.upload(self.path).code, OK)
        self.server.kill9()
        done = self.upload(self.path)
        self.assertEqual(done.code, SERVER)
        self.assertRegex(done.err, r"hearth: %s: cannot reach .*; %s\n$" % (re.escape(self.path), AGAIN))
        self.server.start()
        self.assertIn("stored already", self.upload(self.path).out)
        self.assertEqual(self.n_rows(), 2)


if __name__ == "__main__":
    unittest.main()
