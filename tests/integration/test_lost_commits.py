"""A database that lost commits under a running hearthd: hearthd ends, and the next one stores and answers right.

The lost part has series, stacks and services of its own. Their ids are given again to other ones, so a server that kept
them in memory would mix both up.
"""

import os
import shutil
import subprocess
import time
import unittest

from pprof import Profile
from questions import SAMPLES
from server import Cluster, Server, eventually, in_threads, now_ms, sql
from standby import Standby, kill9

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
HOUR = 3_600_000


def push(server, part, n=30):
    for k in range(n):
        labels = {"__name__": "process_cpu", "service_name": "%s-%d" % (part, k % 3), "pod": "%s-p%d" % (part, k % 7)}
        profile = Profile(TYPES).add(["main", "f%d" % (k % 11), "%s%d" % (part, k)], [k + 1, 1]).encode()
        server.push(profile, labels, id="%s-%d" % (part, k))


class LostCommits(unittest.TestCase):
    def setUp(self):
        self.start = now_ms()
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)

    def serve(self, url):
        """Two servers, as both have to notice; with what they acknowledged before and after the state that is restored."""
        self.servers = in_threads([lambda: Server(database_url=url)] * 2)
        for server in self.servers:
            self.addCleanup(server.kill)
        push(self.servers[0], "kept")
        self.check(["kept"])

    def check(self, parts):
        """Each server knows these parts, nothing else, and each sample is where it belongs."""
        for server in self.servers:
            merged = server.flamegraph(SAMPLES, "{}", self.start, now_ms() + 1000)
            names = {"%s%d" % (part, k) for part in parts for k in range(30)}
            self.assertEqual(merged.total, 465 * len(parts))
            self.assertEqual(set(merged.functions()), names | {"main"} | {"f%d" % k for k in range(11)})
            for part in parts:
                for service in range(3):
                    selector = '{service_name="%s-%d"}' % (part, service)
                    found = server.flamegraph(SAMPLES, selector, self.start, now_ms() + 1000).functions()
                    self.assertEqual(
                        {name: value[1] for name, value in found.items() if name.startswith(part)},
                        {"%s%d" % (part, k): k + 1 for k in range(30) if k % 3 == service},
                    )

    def lose(self):
        """Stored by one server, and in the memory of both."""
        push(self.servers[0], "lost")
        self.check(["kept", "lost"])
        time.sleep(1.5)  # each second, a server looks how long the WAL is

    def assert_they_ended_and_go_on(self, why):
        """As with a supervisor: what ended with a failure is started again."""
        for server in self.servers:
            eventually(lambda: server.process.poll() is not None, 30, what="the end of hearthd")
            self.assertEqual(server.process.returncode, 1, server.log())
            self.assertIn(why, server.log())
            self.assertIn("hearthd ends; start it again", server.log())
        for server in self.servers:
            server.start()
        self.check(["kept"])
        push(self.servers[1], "after")
        self.check(["kept", "after"])
        push(self.servers[0], "lost")  # the client still has it
        self.check(["kept", "after", "lost"])
        for server in self.servers:
            server.stop()

    def test_a_promoted_standby_that_lacks_commits(self):
        standby = Standby(self.cluster)
        self.addCleanup(standby.stop)
        self.serve("host=%s,%s user=hearth dbname=postgres" % (self.cluster.directory, standby.directory))
        end = sql(self.cluster.url(), "SELECT pg_current_wal_flush_lsn()")[0][0]
        eventually(
            lambda: sql(standby.url(), "SELECT pg_last_wal_replay_lsn() >= '%s'" % end) == [["t"]], 30, what="the replay"
        )
        standby.stop()
        self.lose()
        kill9(self.cluster)
        standby.start()
        sql(standby.url(), "SELECT pg_promote()")
        self.assert_they_ended_and_go_on("a standby was promoted")

    def test_an_older_copy_of_the_files(self):
        self.serve(self.cluster.url())
        self.cluster.stop()
        copy = self.cluster.data + ".copy"
        subprocess.run(["cp", "-a", self.cluster.data, copy], check=True)
        self.cluster.start()
        for server in self.servers:
            server.wait_ready()
        self.lose()
        kill9(self.cluster)
        shutil.rmtree(self.cluster.data)
        os.rename(copy, self.cluster.data)
        self.cluster.start()
        self.assert_they_ended_and_go_on("an older copy of its files was put back")

    def test_a_dump_restored_over_the_tables(self):
        self.serve(self.cluster.url())
        dump = os.path.join(self.cluster.directory, "early.sql")
        with open(dump, "w") as out:
            out.write("SET client_min_messages = warning;\nBEGIN;\nDROP SCHEMA hearth_data CASCADE; DROP SCHEMA hearth CASCADE;\n")
            out.flush()
            subprocess.run(
                [Cluster.program("pg_dump"), "-n", "hearth_data", "-n", "hearth", self.cluster.url()], check=True, stdout=out
            )
            out.write("COMMIT;\n")
        self.lose()
        # In one transaction: at no moment do the servers see a database without tables.
        subprocess.run(
            [Cluster.program("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", dump, self.cluster.url()], check=True,
            stdout=subprocess.DEVNULL,
        )
        self.assert_they_ended_and_go_on("a dump was restored")

    def test_a_database_without_tables_is_left_alone(self):
        """As between DROP SCHEMA and pg_restore: a restarted server would make tables of its own."""
        self.serve(self.cluster.url())
        sql(self.cluster.url(), "DROP SCHEMA hearth_data CASCADE; DROP SCHEMA hearth CASCADE")
        for server in self.servers:
            eventually(lambda: b"no table hearth_data.writer any more" in server.http("GET", "/ready")[2], 30)
            self.assertEqual(server.http("GET", "/ready")[0], 503)
        self.assertEqual(sql(self.cluster.url(), "SELECT to_regnamespace('hearth_data') IS NULL"), [["t"]])
        for server in self.servers:
            server.stop()

    def test_a_crash_of_the_database_loses_nothing_and_ends_nobody(self):
        self.serve(self.cluster.url())
        self.lose()
        for _ in range(3):
            kill9(self.cluster)
            self.cluster.start()
            for server in self.servers:
                server.wait_ready()
        self.check(["kept", "lost"])
        for server in self.servers:
            server.stop()


if __name__ == "__main__":
    unittest.main()
