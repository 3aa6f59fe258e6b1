"""What migrations lock, and for how long, by pg_locks, while every table has many rows.

The dumps of tests/golden/schemas have a few rows of nearly every table. They are multiplied by SQL; foreign keys need not
hold among the copies, since only locks are looked at.
"""

import collections
import gzip
import threading
import time
import unittest

from schema_dump import SCHEMAS
from server import Cluster, note, sql
from test_upgrade import MIGRATIONS, migrate, psql

ROWS, MANY_ROWS = 5_000, 50_000
LARGE = {"profile", "push_id", "roll_1h", "roll_10m", "segment", "series", "label_pair", "span_group", "original", "task"}
SECOND = 1.0

# Locks that keep others from writing or reading, and requests for them, behind which others wait as well. A table of the
# transaction itself is in nobody's pg_class yet.
LOCKS = """SELECT extract(epoch FROM clock_timestamp()), c.oid::regclass, l.mode FROM pg_locks l
           JOIN pg_class c ON c.oid = l.relation WHERE l.locktype = 'relation' AND c.relkind IN ('r', 'p', 'i', 'I')
           AND c.relnamespace::regnamespace::text IN ('hearth_data', 'hearth')
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
           UNION ALL SELECT extract(epoch FROM clock_timestamp()), NULL, NULL"""

TABLES = """SELECT c.relname, a.attname, format_type(a.atttypid, NULL), a.attname = ANY (unique_columns) AND NOT
              coalesce(a.attname = ANY (range_columns), false)
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT attisdropped AND attgenerated = '',
            LATERAL (SELECT array_agg(u.attname) AS unique_columns FROM pg_index i JOIN pg_attribute u
              ON u.attrelid = c.oid AND u.attnum = ANY (i.indkey) WHERE i.indrelid = c.oid AND i.indisunique) x,
            LATERAL (SELECT array_agg(r.attname) AS range_columns FROM pg_partitioned_table p JOIN pg_attribute r
              ON r.attrelid = c.oid AND r.attnum = ANY (p.partattrs) WHERE p.partrelid = c.oid) y
            WHERE c.relnamespace = 'hearth_data'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND c.relname <> 'migration' ORDER BY 1, a.attnum"""

# Another value of the k-th copy that the column's rules still allow: hexadecimal digits and lengths stay.
COPIES = {
    "bigint": "{0} + 1000000 + 100 * k",
    "integer": "{0} + 1000000 + 100 * k",
    "text": "CASE WHEN {0} ~ '^[0-9a-f]{{64}}$' THEN encode(sha256(({0} || k)::bytea), 'hex')"
            " WHEN {0} ~ '^[0-9a-f]{{32}}$' THEN md5({0} || k) ELSE {0} || '-' || k END",
    "bytea": "CASE WHEN octet_length({0}) = 32 THEN sha256({0} || k::text::bytea) ELSE {0} || int4send(k) END",
    "uuid": "md5({0}::text || k)::uuid",
}


def count(url, table):
    return int(sql(url, "SELECT count(*) FROM hearth_data." + table)[0][0])


def copy(url, table, columns, kinds, times):
    """Copies each row, with other values in those columns of its keys that have one of these types."""
    values = [COPIES[kind].format(name) if is_key and kind in kinds else name for name, kind, is_key in columns]
    names = [name for name, _, _ in columns]
    sql(url, "SET session_replication_role = replica; INSERT INTO hearth_data.%s (%s) OVERRIDING SYSTEM VALUE SELECT %s"
             " FROM hearth_data.%s, generate_series(1, %d) k ON CONFLICT DO NOTHING" % (
                 table, ", ".join(names), ", ".join(values), table, times))


def multiply(url):
    """Gives every table with rows that can be copied many of them; returns their numbers by table."""
    columns = collections.defaultdict(list)
    for table, name, kind, is_key in sql(url, TABLES):
        columns[table].append((name, kind, is_key == "t"))
    counts = {}
    for table, found in columns.items():
        wanted = MANY_ROWS if table in LARGE else ROWS
        for kinds in ({"text", "bytea", "uuid"}, set(COPIES)):  # numbers may be bound to others by a rule of the row
            n = count(url, table)
            if 0 < n < wanted:
                copy(url, table, found, kinds, wanted // n)
        counts[table] = count(url, table)
    sql(url, "ANALYZE")
    return counts


class Watch:
    """Looks at pg_locks as often as it can; `held` is the longest time for which each (relation, mode) was seen."""

    def __init__(self, url):
        self.url, self.ending = url, threading.Event()
        self.held, self.longest_gap = collections.Counter(), 0.0
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()

    def run(self):
        since, before = {}, None
        while not self.ending.is_set():
            rows = sql(self.url, LOCKS)
            now = float(rows[-1][0])
            seen = {(relation, mode) for _, relation, mode in rows if relation}
            since = {key: since.get(key, now) for key in seen}
            for key, start in since.items():
                self.held[key] = max(self.held[key], now - start)
            self.longest_gap = max(self.longest_gap, now - before if before else 0)
            before = now
            time.sleep(0.005)

    def longer_than(self, seconds):
        return {key: held for key, held in self.held.items() if held > seconds}


class Locks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(template=False)
        cls.addClassCleanup(cls.cluster.stop)
        cls.loaded = {}
        for dump in sorted(SCHEMAS.glob("*.sql.gz")):
            number = dump.name[:4]
            sql(cls.cluster.url(), "CREATE DATABASE schema_%s TEMPLATE template0" % number)
            url = cls.cluster.url("schema_" + number)
            psql(url, gzip.decompress(dump.read_bytes()).decode())
            cls.loaded[number] = url, multiply(url)

    def run_watched(self, url, text):
        """A transaction with these statements, as hearthd runs a migration."""
        with Watch(url) as watch:
            psql(url, "BEGIN;\n%s\nCOMMIT;" % text)
        return watch

    def test_tables_of_each_dump_have_many_rows(self):
        for number, (_, counts) in self.loaded.items():
            small = {table for table, n in counts.items() if n < ROWS * 9 // 10}
            note("%s: tables with fewer rows: %s" % (number, " ".join(sorted(small))))
            self.assertLess(len(small), len(counts) // 3, (number, small))
            self.assertGreater(counts["profile"], MANY_ROWS * 9 // 10)

    def test_no_migration_holds_a_lock_for_more_than_a_second(self):
        """All that keeps others from reading or writing, from each dump to the newest schema."""
        for number, (url, counts) in self.loaded.items():
            missing = [path.name for path in MIGRATIONS if path.name[:4] > number]
            with self.subTest(dump=number), Watch(url) as watch:
                code, text = migrate(url)
                self.assertEqual(code, 0, text)
                self.assertEqual(text.count("applied "), len(missing))
            self.assertEqual(watch.longer_than(SECOND), {})
            longest = max(watch.held.values(), default=0)
            note("from %s, %d migrations over %d rows: the longest lock was seen for %.3f s; looked at each %.3f s or less" % (
                number, len(missing), sum(counts.values()), longest, watch.longest_gap))

    def test_a_migration_that_would_hold_one_is_found(self):
        """What the test above would say of statements that hold locks, and that it keeps quiet about those that do not."""
        url = next(reversed(self.loaded.values()))[0]
        slow = self.run_watched(url, "ALTER TABLE hearth_data.series ADD COLUMN planted int; SELECT pg_sleep(1.5);")
        self.assertEqual(set(slow.longer_than(SECOND)), {("hearth_data.series", "AccessExclusiveLock")})
        index = self.run_watched(url, "CREATE INDEX ON hearth_data.push_id (at); SELECT pg_sleep(1.5);")
        self.assertIn(("hearth_data.push_id", "ShareLock"), index.longer_than(SECOND))
        rewrite = self.run_watched(url, "ALTER TABLE hearth_data.series ALTER planted TYPE text;")
        self.assertGreater(rewrite.held[("hearth_data.series", "AccessExclusiveLock")], 0.02)
        writing = "UPDATE hearth_data.application SET profiling = profiling; CREATE TABLE hearth_data.own (n int); SELECT pg_sleep(1.2);"
        self.assertEqual(self.run_watched(url, writing).longer_than(0), {})


if __name__ == "__main__":
    unittest.main()
