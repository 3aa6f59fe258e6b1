"""Backup and restore with PostgreSQL's own tools: the restored server answers byte for byte."""

import os
import subprocess
import unittest

from pprof import Profile
from questions import CPU, SAMPLES
from server import Cluster, Server, now_ms, sql

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
BASE = now_ms() // MINUTE * MINUTE


def one(ms, names, value):
    return Profile(TYPES, time_ns=ms * 1_000_000).add(["main", *names], [value, value * 10_000_000]).encode()


def fill(server, first=0, n=120):
    for k in range(first, first + n):
        labels = {"__name__": "process_cpu", "service_name": "s%d" % (k % 3), "pod": "p%d" % (k % 7), "zone": "z\u00fc"}
        server.push(one(BASE - (k % 60) * HOUR - k, ["f%d" % (k % 11), "g%d" % k], k + 1), labels, id="id-%d" % k)


def answers(server):
    start, end = BASE - 3 * DAY, BASE + HOUR
    out = []
    for selector in ("{}", '{service_name="s1"}', '{pod=~"p[1-3]"}'):
        for kind in (CPU, SAMPLES):
            out.append(server.merge_pprof(kind, selector, start, end))
            out.append(server.stacktraces(kind, selector, start, end))
            out.append(server.select_series(kind, selector, start, end, 3600, ["pod"]))
        out.append(server.series(start, end, [selector]))
    out.append(server.profile_types(start, end))
    out.append(server.label_values("pod", start, end))
    return out


def run(name, *arguments):
    done = subprocess.run([Cluster.program(name), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


class BaseBackup(Cluster):
    """A cluster made of pg_basebackup of a running one."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()

    def make(self, initdb):
        self._run(
            self.program("pg_basebackup"), "-D", self.data, "-d", self.primary.url(), "-X", "stream",
            "--checkpoint=fast", "--no-sync",
        )


class Backup(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.server = Server("--reject-older-than", "30d", database_url=cls.cluster.url())
        fill(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cluster.stop()

    def serve(self, cluster, *options):
        server = Server("--reject-older-than", "30d", *options, database_url=cluster.url())
        self.addCleanup(server.stop)
        return server

    def goes_on(self, server):
        """What was pushed before is known, what comes is stored, nothing is mixed up."""
        before = server.flamegraph(SAMPLES, "{}", BASE - 3 * DAY, BASE + HOUR)
        labels = {"__name__": "process_cpu", "service_name": "s1", "pod": "new"}
        server.push(one(BASE - MINUTE, ["after"], 1000), labels)
        after = server.flamegraph(SAMPLES, "{}", BASE - 3 * DAY, BASE + HOUR)
        self.assertEqual(after.total, before.total + 1000)
        self.assertEqual(after.functions()["after"], (1000, 1000))

    def test_a_dump_restored_into_a_new_cluster_has_equal_answers(self):
        wanted = answers(self.server)
        other = Cluster(template=False)
        self.addCleanup(other.stop)
        dump = os.path.join(other.directory, "hearth.dump")
        # While the server runs: a dump is one snapshot.
        run("pg_dump", "-Fc", "-n", "hearth_data", "-n", "hearth", "-f", dump, self.cluster.url())
        run("pg_restore", "--no-owner", "--no-acl", "--exit-on-error", "-d", other.url(), dump)
        server = self.serve(other)
        self.assertEqual(answers(server), wanted)
        self.goes_on(server)
        self.assertEqual(answers(self.server), wanted)

    def test_a_dump_of_many_files_restored_in_parallel_has_equal_answers(self):
        wanted = answers(self.server)
        other = Cluster(template=False)
        self.addCleanup(other.stop)
        dump = os.path.join(self.cluster.directory, "dump")
        run("pg_dump", "-Fd", "-j", "2", "-n", "hearth_data", "-n", "hearth", "-f", dump, self.cluster.url())
        run("pg_restore", "--no-owner", "--no-acl", "--exit-on-error", "-j", "2", "-d", other.url(), dump)
        self.assertEqual(answers(self.serve(other)), wanted)

    def test_a_base_backup_taken_while_profiles_arrive_is_complete(self):
        wanted = answers(self.server)
        other = BaseBackup(self.cluster)
        self.addCleanup(other.stop)
        server = self.serve(other)
        self.assertEqual(answers(server), wanted)
        self.goes_on(server)

    def test_settings_of_the_leaves_survive_a_dump(self):
        self.server.terminate()  # its background work makes and drops leaves
        self.addCleanup(self.server.start)
        other = Cluster(template=False)
        self.addCleanup(other.stop)
        dump = os.path.join(other.directory, "hearth.dump")
        run("pg_dump", "-Fc", "-n", "hearth_data", "-n", "hearth", "-f", dump, self.cluster.url())
        run("pg_restore", "--no-owner", "--no-acl", "--exit-on-error", "-d", other.url(), dump)
        look = (
            "SELECT relname, relkind, reloptions, (SELECT array_agg(attstorage::text ORDER BY attnum) FROM pg_attribute"
            " WHERE attrelid = c.oid AND attnum > 0) FROM pg_class c"
            " WHERE relnamespace IN ('hearth_data'::regnamespace, 'hearth'::regnamespace) ORDER BY relname, relkind"
        )
        self.assertEqual(sql(other.url(), look), sql(self.cluster.url(), look))

    def test_after_a_restore_to_an_earlier_state_servers_are_restarted(self):
        """The way that the documentation describes: stop, restore, start."""
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        server = Server("--reject-older-than", "30d", database_url=cluster.url())
        fill(server, 0, 30)
        wanted = answers(server)
        dump = os.path.join(cluster.directory, "early.dump")
        run("pg_dump", "-Fc", "-n", "hearth_data", "-n", "hearth", "-f", dump, cluster.url())
        fill(server, 200, 30)  # lost by the restore: new stacks, new series hours
        self.assertNotEqual(answers(server), wanted)
        server.stop()
        sql(cluster.url(), "DROP SCHEMA hearth_data CASCADE; DROP SCHEMA hearth CASCADE")
        run("pg_restore", "--no-owner", "--no-acl", "--exit-on-error", "-d", cluster.url(), dump)
        server = Server("--reject-older-than", "30d", database_url=cluster.url())
        self.addCleanup(server.stop)
        self.assertEqual(answers(server), wanted)
        fill(server, 200, 30)  # the clients send again
        fill(server, 0, 10)  # known by their ids: not stored twice
        total = sum(k + 1 for k in list(range(30)) + list(range(200, 230)))
        self.assertEqual(server.flamegraph(SAMPLES, "{}", BASE - 3 * DAY, BASE + HOUR).total, total)


if __name__ == "__main__":
    unittest.main()
