"""Upgrades: from each released schema, and from one hearthd to the next under load.

tests/golden/schemas/ has a dump of each released schema with rows of most tables, and answers that were given over it
(schema_dump.py makes both). HEARTHD_OLD names an older binary for the change under load; without it, both are this one.
"""

import gzip
import json
import os
import re
import signal
import subprocess
import types
import unittest

from questions import CPU
from schema_dump import SCHEMAS, push
from server import HEARTHD, ROOT, Cluster, Server, eventually, note, now_ms, server_environment, sql
from test_crash import Pusher

OLD = os.environ.get("HEARTHD_OLD", HEARTHD)
RETAIN = ["--retain-%s=0" % what for what in ("raw", "10m", "1h", "1d", "agents", "tasks", "spans")]
MIGRATIONS = sorted((ROOT / "sql").glob("[0-9]*.sql"))
ROUNDS = 3

# Migrations of the first release that read a whole table. Later ones must not: they would hold its lock for as long as
# the table is large. A new index, a constraint or another type of a column needs another way, such as NOT VALID, or an
# index of each new leaf.
READ_BEFORE_THE_FIRST_RELEASE = {
    ("0007_task_results.sql", "hearth_data.process"),
    ("0011_span_index.sql", "hearth_data.profile"),
    ("0011_span_index.sql", "hearth_data.segment"),
    ("0011_span_index.sql", "hearth_data.span_group"),
    ("0020_task_upload_profile.sql", "hearth_data.task_upload"),
}

# Before a migration: a leaf for each table that is partitioned. In its transaction: the tables of before it that it
# rewrote, read as a whole (for an index, a constraint), or changed rows of. PostgreSQL counts that without rows, too.
LEAVES = r"""SELECT format('CREATE TABLE %s_some PARTITION OF %s DEFAULT', oid::regclass, oid::regclass) FROM pg_class c
             WHERE relkind = 'p' AND relnamespace = 'hearth_data'::regnamespace
             AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid) \gexec"""
SNAPSHOT = """CREATE TEMP TABLE before ON COMMIT DROP AS SELECT oid, relfilenode FROM pg_class
              WHERE relnamespace::regnamespace::text IN ('hearth_data', 'hearth') AND relkind = 'r';"""
TOUCHED = """SELECT DISTINCT COALESCE((SELECT inhparent FROM pg_inherits WHERE inhrelid = c.oid), c.oid)::regclass
             FROM before b JOIN pg_class c USING (oid) JOIN pg_stat_xact_all_tables s ON s.relid = c.oid
             WHERE c.relfilenode <> b.relfilenode OR s.seq_scan + s.n_tup_upd + s.n_tup_del > 0;"""


def psql(url, text):
    done = subprocess.run(
        [Cluster.program("psql"), "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", url], input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def migrate(url, *options):
    done = subprocess.run(
        [HEARTHD, "migrate", *options, "--database-url", url], env=server_environment(), capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


class Upgrade(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(template=False)
        cls.addClassCleanup(cls.cluster.stop)

    def restore(self, dump, name):
        sql(self.cluster.url(), "CREATE DATABASE %s TEMPLATE template0" % name)
        psql(self.cluster.url(name), gzip.decompress(dump.read_bytes()).decode())
        return self.cluster.url(name)

    def check_answers(self, server, dump):
        for asked in json.loads(dump.with_name(dump.name.replace(".sql.gz", ".json")).read_text()):
            with self.subTest(method=asked["method"], request=asked["request"]):
                self.assertEqual(server.connect(asked["method"], asked["request"]), asked["answer"])

    def test_each_released_schema_is_migrated_and_answers(self):
        dumps = sorted(SCHEMAS.glob("*.sql.gz"))
        self.assertTrue(dumps)
        for dump in dumps:
            with self.subTest(dump=dump.name):
                number = dump.name[:4]
                url = self.restore(dump, "schema_" + number)
                missing = [path.name for path in MIGRATIONS if path.name[:4] > number]
                applied = "".join("applied %s\n" % name for name in missing) or "the schema is up to date\n"
                self.assertEqual(migrate(url), (0, applied))
                server = Server(*RETAIN, database_url=url)
                self.addCleanup(server.kill)
                self.check_answers(server, dump)

                # It goes on: new profiles of old series and stacks, and of new ones.
                start = now_ms()
                for k in (1, 1000):
                    push(server, now_ms(), k, "new")
                found = server.flamegraph(CPU, "{}", start - 1000, now_ms() + 1000)
                self.assertEqual(found.total, (2 + 1001) * 10_000_000)
                server.stop()

    def test_servers_are_upgraded_one_after_the_other_under_load(self):
        """What a balancer sees: the next server is ready before the previous one is told to end."""
        dump = sorted(SCHEMAS.glob("*.sql.gz"))[-1]
        url = self.restore(dump, "rolling")
        current = types.SimpleNamespace(channel=None)
        start = now_ms()
        old = self.serve(OLD, url)
        self.check_answers(old, dump)
        current.channel = old.channel
        pushers = [Pusher(k, current) for k in range(6)]
        for pusher in pushers:
            pusher.start()
        for _ in range(ROUNDS):
            n_before = [len(p.acknowledged) for p in pushers]
            new = self.serve(HEARTHD, url)
            current.channel = new.channel
            old.process.send_signal(signal.SIGTERM)
            self.assertEqual(old.process.wait(60), 0)
            eventually(lambda: all(len(p.acknowledged) > n + 20 for p, n in zip(pushers, n_before)), 60, what="pushes")
            self.check_answers(new, dump)
            old = new
        for pusher in pushers:
            pusher.stopping.set()
        for pusher in pushers:
            pusher.join(60)

        acknowledged = set().union(*(p.acknowledged for p in pushers))
        doubtful = set().union(*(p.doubtful for p in pushers))
        self.assertFalse([p.unexpected for p in pushers if p.unexpected])
        self.assertFalse(any(p.doubtful for p in pushers if p.repeats))
        names = self.stored_names(new, start)
        note("%d changes of the server: %d pushes acknowledged, %d repeated, %d given up by clients that do not repeat" % (
            ROUNDS, len(acknowledged), sum(p.n_repeated for p in pushers), len(doubtful)))
        self.assertEqual({n for n, count in names if count != 1}, set(), "doubled")
        self.assertEqual(acknowledged - {n for n, _ in names}, set(), "lost")
        new.stop()

    def stored_names(self, server, start):
        merged = server.flamegraph('process_cpu:samples:count:cpu:nanoseconds', '{service_name=~"crash-.*"}', start, now_ms() + 1000)
        return [(name, value[0]) for name, value in merged.functions().items() if re.fullmatch(r"f-\d+-\d+", name)]

    def serve(self, binary, url):
        server = Server(*RETAIN, database_url=url, hearthd=binary)
        self.addCleanup(server.kill)
        return server

    def test_no_migration_reads_or_rewrites_a_table(self):
        """What it does to a table of before it, it would do to millions of rows under a lock."""
        sql(self.cluster.url(), "CREATE DATABASE steps TEMPLATE template0")
        url = self.cluster.url("steps")
        psql(url, "CREATE SCHEMA hearth_data;")
        found = set()
        for path in MIGRATIONS:
            psql(url, LEAVES)  # a session of its own, as PostgreSQL counts by session
            touched = psql(url, "BEGIN;\n%s\n%s\n%s\nCOMMIT;" % (SNAPSHOT, path.read_text(), TOUCHED))
            found |= {(path.name, table) for table in touched}
        self.assertEqual(found, READ_BEFORE_THE_FIRST_RELEASE)


if __name__ == "__main__":
    unittest.main()
