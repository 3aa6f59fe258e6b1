"""No statement of hearthd names both catalogue and data, and those over data could run on distributed tables.

Each statement can be prepared where only one of the two sets is; those over data keep the rules of tests/lint/distributed.py.

The statements are those that the integration tests of this build recorded since hearthd was built (record_statements.c):
under CTest all of them, otherwise at least those of test_all_tables.py. Statements that cannot be prepared (COPY, LOCK,
ALTER) are judged by the tables that they name.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HEARTHD", ROOT / "build/bin/hearthd")).parents[1]
os.environ.setdefault("HEARTH_TEST_RECORDER", str(BUILD / "tests/record_statements.so"))

from server import HEARTHD, RECORDER, Cluster, Server, note, sql  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/lint"))
import distributed  # noqa: E402
import placement  # noqa: E402

SETS = placement.placement(ROOT)
STATEMENTS = pathlib.Path(RECORDER).parent / "statements"
PREPARABLE = re.compile(r"\s*(?:SELECT|WITH|INSERT|UPDATE|DELETE|VALUES|TABLE|\()", re.I)
PLANTED = "SELECT 1 FROM hearth_data.profile JOIN hearth_data.service USING (service_id)"

# Tables whose policy reads the other set.
EXCEPTED_POLICIES = {"hearth_data.span_group": "looks for the service, as the catalogue's tables do"}

# Statements that hearthd writes otherwise where data tables are distributed: what they break, the begin of their text, and why.
PLAIN_ONLY = (
    ("a lateral query with LIMIT or OFFSET", "SELECT * FROM (SELECT service_id, generation AS who",
     "read_sql.c: OFFSET 0 keeps PostgreSQL at a nested loop while a day's leaves are new"),
    ("DETACH CONCURRENTLY", "ALTER TABLE hearth_data.", "partitions_drop.c: detaches under a lock that it waits for only a moment"),
    ("a volatile call in RETURNING", "INSERT INTO hearth_data.ingest_batch", "batch.c, batch_prepared.c: spares a statement"),
    ("a lateral query with LIMIT or OFFSET", "SELECT coalesce(min(coalesce(first,",
     "background_state.c: a probe of the index for each series spares the hour of the services"),
    ("a lateral query with LIMIT or OFFSET", "WITH RECURSIVE s AS ((SELECT series_id, ts FROM hearth_data.profile",
     "background_state.c: reads the least time of all series instead"),
    ("a recursive query without service_id", "WITH RECURSIVE s AS ((SELECT series_id, ts FROM hearth_data.profile",
     "background_state.c: reads the least time of all series instead"),
)

# The error of a statement on the current database, '' if it can be prepared.
TRY_TO_PREPARE = """CREATE FUNCTION public.try_to_prepare(statement text, types text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'PREPARE tried' || coalesce('(' || (
        SELECT string_agg(CASE o WHEN '0' THEN 'unknown' ELSE o::oid::regtype::text END, ', ' ORDER BY n)
        FROM regexp_split_to_table(nullif(types, ''), ',') WITH ORDINALITY AS t (o, n)) || ')', '')
        || ' AS ' || statement;
    DEALLOCATE tried;
    RETURN '';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || replace(SQLERRM, E'\\n', ' ');
END $$"""


def table_of(name):
    """Of a leaf the table that it is a leaf of; leaves that are about to be dropped have a prefix."""
    found = re.fullmatch(r"(?:leaving_)?(\w+?)(?:_\d{8})?", name)
    return found.group(1) if found and found.group(1) in SETS else name


def split(script):
    """The statements of a script. Neither literals nor comments of hearthd's scripts hold anything but plain text."""
    return [one.strip() for one in re.findall(r"(?:[^;']|'(?:[^']|'')*')+", script) if one.strip()]


def is_recent(record):
    return record.exists() and record.stat().st_mtime >= os.stat(HEARTHD).st_mtime


def recorded():
    """{(statement, types)} of the records that were made since hearthd was built; leaves are replaced by their tables."""
    migrations = [path.read_text() for path in (ROOT / "sql").glob("[0-9]*.sql")]  # make both sets
    found = {}
    for path in filter(is_recent, sorted(STATEMENTS.glob("*"))):
        fields = path.read_bytes().decode(errors="replace").split("\0")
        for types, text in zip(fields[0::2], fields[1::2]):
            if any(migration in text for migration in migrations):
                continue
            for one in split(text):
                one = re.sub(r"\b(hearth_data\.)(\w+)", lambda m: m[1] + table_of(m[2]), one)
                found.setdefault((re.sub(r"\d{4,}", "0000", one), types), one)
    return {(text, types) for (_, types), text in found.items()}


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Placement(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not is_recent(STATEMENTS / "test_all_tables"):
            subprocess.run([sys.executable, ROOT / "tests/integration/run.py", "test_all_tables"], check=True)
        cls.cluster = Cluster()
        Server(database_url=cls.cluster.url()).stop()  # migrates
        cls.urls = {}
        for kept in ("CATALOGUE", "DATA"):
            name = kept.lower()
            sql(cls.cluster.url(), "CREATE DATABASE copy_of_%s TEMPLATE postgres" % name)
            cls.urls[kept] = cls.cluster.url("copy_of_" + name)
            sql(cls.urls[kept], TRY_TO_PREPARE)
            dropped = ", ".join("hearth_data." + table for table, placed in SETS.items() if placed != kept)
            sql(cls.urls[kept], "SET client_min_messages = error; DROP TABLE %s CASCADE" % dropped)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def mixed(self, statements):
        """{statement: why} for those that belong to neither set. Types are decimal OIDs with commas between them."""
        asked = [one for one in statements if PREPARABLE.match(one[0])]
        errors = []
        for url in self.urls.values():
            rows = ", ".join("(%d, %s, %s)" % (i, quoted(text), quoted(types)) for i, (text, types) in enumerate(asked))
            found = sql(url, "SELECT public.try_to_prepare(v.s, v.t) FROM (VALUES %s) v (i, s, t) ORDER BY i" % rows)
            errors.append([row[0] for row in found])
        out = {text: " / ".join(both) for (text, _), both in zip(asked, zip(*errors)) if all(both)}
        for text, _ in statements:
            sets = {SETS[name] for name in placement.tables_of(text) if name in SETS}
            if not PREPARABLE.match(text) and len(sets) > 1:
                out[text] = "names both sets"
        return out

    def test_no_statement_names_both_sets(self):
        statements = recorded()
        note("%d statements are checked" % len(statements))
        # The recorder works: a commit writes these.
        texts = [text for text, _ in statements]
        for begin in ("INSERT INTO hearth_data.ingest_batch", "INSERT INTO hearth_data.profile"):
            self.assertTrue(any(text.startswith(begin) for text in texts), begin)
        wrong = ["%s\n    %s" % both for both in self.mixed(statements).items()]
        self.assertFalse(wrong, "%d statements belong to neither set:\n%s" % (len(wrong), "\n".join(sorted(wrong))))

    def test_statements_over_data_keep_the_rules_of_distributed_tables(self):
        excused, wrong = set(), []
        for text, _ in recorded():
            for rule in distributed.breaches(text, SETS):
                known = {one for one in PLAIN_ONLY if rule == one[0] and text.startswith(one[1])}
                excused |= known
                wrong += [] if known else ["%s: %s" % (rule, text)]
        self.assertFalse(wrong, "%d breaches:\n%s" % (len(wrong), "\n".join(sorted(wrong))))
        self.assertIn(PLAIN_ONLY[0], excused)  # the statements of reads were recorded

    def test_a_statement_that_names_both_sets_is_found(self):
        planted = {
            (PLANTED, ""), ("LOCK TABLE hearth_data.profile, hearth_data.service", ""),
            ("INSERT INTO hearth_data.span_group (service_id) SELECT service_id FROM hearth_data.task WHERE kind = $1", "23"),
        }
        sound = {
            ("SELECT 1 FROM hearth_data.profile p JOIN hearth_data.segment USING (service_id) WHERE p.ts < $1", "20"),
            ("SELECT 1 FROM hearth_data.service, unnest($1)", "1007"), ("LOCK TABLE hearth_data.profile", ""),
        }
        self.assertEqual(set(self.mixed(planted | sound)), {text for text, _ in planted})

    def test_no_function_names_both_sets(self):
        rows = sql(
            self.urls["DATA"],
            "SELECT proname, array_to_string(ARRAY("
            "SELECT m[1] FROM regexp_matches(prosrc, 'hearth_data\\.(\\w+)', 'g') m), ' ')"
            " FROM pg_proc WHERE pronamespace = 'hearth_data'::regnamespace",
        )
        self.assertIn("enter_tenants", [name for name, _ in rows])
        for name, tables in rows:
            self.assertLessEqual(len({SETS[table] for table in tables.split() if table in SETS}), 1, name)

    def test_no_policy_of_a_table_reads_the_other_set(self):
        rows = sql(
            self.cluster.url(),
            "SELECT polrelid::regclass::text, regexp_replace(pg_get_expr(polqual, polrelid), '\\s+', ' ', 'g')"
            " FROM pg_policy"
            " WHERE polrelid::regclass::text LIKE 'hearth_data.%'",
        )
        self.assertGreater(len(rows), 40)
        for table, condition in rows:
            sets = {SETS[name] for name in placement.tables_of(table + " " + condition) if name in SETS}
            self.assertEqual(len(sets) > 1, table in EXCEPTED_POLICIES, "%s: %s" % (table, condition))


if __name__ == "__main__":
    unittest.main()
