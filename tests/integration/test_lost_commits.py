"""A database that lost commits under a running hearthd: hearthd begins again, and then stores and answers right.

The lost part has series, stacks and services of its own. Their ids are given again to other ones, so a server that kept
them in memory would mix both up.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

import prometheus
from pprof import Profile
from questions import SAMPLES
from server import Cluster, RpcError, Server, eventually, in_threads, now_ms, own_directory, sql, temporary_directory
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

    def is_connected(self, server):
        """A channel may notice only at its next call that its connection has ended."""
        try:
            return server.label_names(self.start, now_ms()) is not None
        except RpcError as error:
            self.assertEqual(error.code, "unavailable")
            return False

    def assert_they_begin_again(self, why):
        """In the same process and on the same port, without what was in memory."""
        def has_begun_again(server):
            try:
                return prometheus.value(server.metrics(), "hearth_database_replaced_total") == 1
            except OSError:  # the connection of the request ended with what it began
                return False

        for server in self.servers:
            eventually(lambda server=server: has_begun_again(server), 30, what="another beginning")
            self.assertIn(why, server.log())
            self.assertIn("hearthd begins again", server.log())
            server.wait_ready()
            eventually(lambda: self.is_connected(server), 10, what="a connection after that")
            self.assertIsNone(server.process.poll())
        self.check(["kept"])
        push(self.servers[1], "after")
        self.check(["kept", "after"])
        push(self.servers[0], "lost")  # the client still has it
        self.check(["kept", "after", "lost"])
        for server in self.servers:
            server.stop()

    def test_servers_notice_a_promoted_standby_that_lacks_commits(self):
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
        self.assert_they_begin_again("a standby was promoted")

    def test_after_a_promotion_spooled_pushes_are_stored_and_reloaded_options_are_kept(self):
        standby = Standby(self.cluster)
        self.addCleanup(standby.stop)
        config = pathlib.Path(temporary_directory(), "hearthd.yaml")
        config.write_text("ingest:\n  max-label-names: 60\n")
        server = Server(
            "--spool-dir", own_directory(), "--config", str(config),
            database_url="host=%s,%s user=hearth dbname=postgres" % (self.cluster.directory, standby.directory),
        )
        self.addCleanup(server.kill)
        config.write_text("ingest:\n  max-label-names: 4\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "configuration reloaded" in server.log(), what="the reload")

        kill9(self.cluster)
        eventually(lambda: prometheus.value(server.metrics(), "hearth_ready") == 0, what="a server that notices")
        status, headers, body = server.http("POST", "/ingest?name=spooled&format=collapsed", b"main;spooled 7\n", timeout=60)
        self.assertEqual((status, headers.get("hearth-spooled")), (202, "1"), body)
        sql(standby.url(), "SELECT pg_promote()")
        stored = "SELECT count(*) FROM hearth_data.profile JOIN hearth_data.service USING (service_id) WHERE name = 'spooled'"
        eventually(lambda: sql(standby.url(), stored) == [["1"]], 60, what="the spooled profile")
        self.assertEqual(prometheus.value(server.metrics(), "hearth_database_replaced_total"), 1)
        status, _, body = server.http("POST", "/ingest?name=three{a=1,b=2,c=3}&format=collapsed", b"main;late 7\n")
        self.assertEqual(status, 400, body)
        self.assertIn(b"max-label-names", body)
        server.stop()

    def test_servers_notice_an_older_copy_of_the_files(self):
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
        self.assert_they_begin_again("an older copy of its files was put back")

    def test_servers_notice_a_dump_restored_over_the_tables(self):
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
        self.assert_they_begin_again("a dump was restored")

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

    def test_a_crash_of_the_database_loses_nothing_and_ends_no_stream(self):
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
