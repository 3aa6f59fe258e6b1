"""selftest.py -- the lints of layers, rooms, functions, placement and statements report breaches: each is given some."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import distributed
import functions
import layers
import placement
import proofs
import rooms
from layer_table import Table

LAYERS = """
base:
store: base
store/given.h:
store/pg:
store/read: given.h pg
engine: base store
front: base engine
client: base
client/common:
client/flame: common
~engine: store/seen.h   # a comment
!libpq-fe.h: store
"""

# What a sound tree has; the tests add one file to it each.
SOUND = {
    "include/hearth/store/seen.h": "",
    "include/hearth/store/hidden.h": "",
    "include/hearth/engine/query.h": '#include "hearth/store/seen.h"\n',
    "server/store/store.c": '#include "read/read.h"\n#include "store_root.h"\n',
    "server/store/store_root.h": "",
    "server/store/given.h": "",
    "server/store/pg/pg.h": "# include <libpq-fe.h>\n",
    "server/store/read/read.h": '#include "given.h"\n#include "pg/pg.h"\n',
    "server/front/front.c": '#include "hearth/engine/query.h"\n',
    "clients/cli/table.h": "",
    "clients/cli/common/cli.h": "",
    "clients/cli/flame/screen.h": '#include "cli.h"\n',
    "clients/cli/main.c": '#include "screen.h"\n#include "table.h"\n',
}


class Layers(unittest.TestCase):
    def errors_of(self, files, table=LAYERS):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**SOUND, "server/LAYERS": table, **files}.items():
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return layers.Check(root).run()

    def test_a_sound_tree_has_no_errors(self):
        self.assertEqual(self.errors_of({}), [])

    def test_a_layer_above_is_reported(self):
        errors = self.errors_of({"server/base/up.c": '\n#include "hearth/store/seen.h"\n'})
        self.assertEqual(errors, ["server/base/up.c:2: base must not include store"])

    def test_a_header_behind_a_header_is_reported(self):
        query = '#include "hearth/store/seen.h"\n#include "hearth/store/hidden.h"\n'
        errors = self.errors_of({"include/hearth/engine/query.h": query})
        self.assertEqual(
            errors,
            ["server/front/front.c:1: front sees store/hidden.h through hearth/engine/query.h;"
             " LAYERS has no ~engine for it"],
        )

    def test_a_shown_header_that_no_layer_sees_is_reported(self):
        errors = self.errors_of({"include/hearth/engine/query.h": ""})
        self.assertEqual(errors, ["LAYERS: ~engine names store/seen.h, which nobody sees through engine"])

    def test_a_room_below_must_not_include_one_above(self):
        errors = self.errors_of({"server/store/pg/up.c": '#include "read/read.h"\n'})
        self.assertEqual(errors, ["server/store/pg/up.c:1: store/pg must not include store/read"])

    def test_a_room_must_not_include_the_root(self):
        errors = self.errors_of({"server/store/pg/up.c": '#include "store_root.h"\n'})
        self.assertEqual(errors, ["server/store/pg/up.c:1: store/pg must not include store/store_root.h"])

    def test_an_external_header_is_reported(self):
        errors = self.errors_of({"server/engine/sql.c": "#include <libpq-fe.h>\n"})
        self.assertEqual(errors, ["server/engine/sql.c:1: <libpq-fe.h> is not allowed in engine"])

    def test_an_unknown_room_is_reported(self):
        self.assertEqual(self.errors_of({"server/store/new/a.c": ""}), ["server/store/new/a.c: store/new is not in LAYERS"])

    def test_headers_of_rooms_above_and_of_the_root_are_reported_of_clients_too(self):
        errors = self.errors_of({"clients/cli/common/up.c": '#include "screen.h"\n#include "table.h"\n'})
        self.assertEqual(
            errors,
            ["clients/cli/common/up.c:1: client/common must not include client/flame",
             "clients/cli/common/up.c:2: client/common must not include table.h"],
        )

    def test_a_cycle_cannot_be_written(self):
        errors = Table("a: b\nb: a\n").errors
        self.assertEqual(errors, ["LAYERS: a names b before it is defined"])


class Rooms(unittest.TestCase):
    def errors_of(self, *symbols):
        return rooms.check(Table(LAYERS), symbols)

    def test_uses_of_rooms_and_layers_below_are_allowed(self):
        errors = self.errors_of(
            ("server/store/pg/pg.c", "pg_open", "T"),
            ("server/store/__/__/generated/migrations.c", "migrations", "R"),
            ("server/store/read/read.c", "pg_open", "U"),
            ("server/store/pg/pg.c", "migrations", "U"),
            ("server/store/store.c", "pg_open", "U"),
            ("server/engine/plan.c", "pg_open", "U"),
            ("server/engine/plan.c", "malloc", "U"),
        )
        self.assertEqual(errors, [])

    def test_uses_of_rooms_above_and_of_the_root_are_reported(self):
        errors = self.errors_of(
            ("server/store/read/read.c", "read_rows", "T"),
            ("server/store/store.c", "store_open", "T"),
            ("server/store/pg/pg.c", "read_rows", "U"),
            ("server/store/pg/pg.c", "store_open", "U"),
        )
        self.assertEqual(
            errors,
            ["server/store/pg/pg.c: store/pg must not use read_rows, defined in server/store/read/read.c",
             "server/store/pg/pg.c: store/pg must not use store_open, defined in server/store/store.c"],
        )

    def test_uses_of_rooms_above_are_reported_of_clients_too(self):
        errors = self.errors_of(
            ("clients/cli/common/say.c", "say", "T"),
            ("clients/cli/flame/screen.c", "say", "U"),
            ("clients/cli/flame/screen.c", "screen_open", "T"),
            ("clients/cli/common/say.c", "screen_open", "U"),
            ("clients/cli/main.c", "screen_open", "U"),
        )
        self.assertEqual(
            errors,
            ["clients/cli/common/say.c: client/common must not use screen_open, defined in clients/cli/flame/screen.c"],
        )

    def circles_of(self, table, *uses):
        """uses: (file, file that it uses)."""
        files = {file for use in uses for file in use}
        defined = [(file, file, "T") for file in files]
        return rooms.check_circles(Table(table), defined + [(file, used, "U") for file, used in uses])

    def test_files_that_use_each_other_in_a_circle_are_reported(self):
        a, b, c, d = (f"server/base/{name}.c" for name in "abcd")
        uses = (a, b), (b, c), (c, a), (c, d)
        self.assertEqual(self.circles_of("base:", *uses), [f"files use each other in a circle: {a} {b} {c}"])
        self.assertEqual(self.circles_of(f"base:\n@circle: {a} {b} {c}", *uses), [])
        self.assertEqual(self.circles_of("base:", (a, b), (b, c), (a, c)), [])

    def test_a_listed_circle_that_is_gone_is_reported(self):
        a, b, c = (f"server/base/{name}.c" for name in "abc")
        errors = self.circles_of(f"base:\n@circle: {a} {b}", (a, b), (b, c))
        self.assertEqual(errors, [f"LAYERS: there is no such circle: {a} {b}"])

    def test_generated_files_are_in_no_circle(self):
        a, parser = "server/selector/a.c", "server/selector/__/__/generated/parser.c"
        self.assertEqual(self.circles_of("selector:", (a, parser), (parser, a)), [])

    def test_a_call_around_a_layer_is_reported(self):
        errors = self.errors_of(
            ("server/store/read/read.c", "read_rows", "T"), ("server/front/front.c", "read_rows", "U")
        )
        self.assertEqual(errors, ["server/front/front.c: front must not use read_rows, defined in server/store/read/read.c"])

    def test_objects_are_read_with_nm(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "a.c"), pathlib.Path(folder, "a.o")
            source.write_text("int used(void);\nint made(void);\nint made(void) { return used(); }\n")
            subprocess.run(["cc", "-c", "-o", target, source], check=True)
            found = {(name, kind) for _, name, kind in rooms.read_symbols([target])}
            self.assertEqual(found & {("used", "U"), ("made", "T")}, {("used", "U"), ("made", "T")})


class Functions(unittest.TestCase):
    def complaints_about(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return functions.check(pathlib.Path(root), list(files))

    def test_a_static_name_twice_in_a_layer_is_reported(self):
        one, other = "static int take(void)\n{\n    return 1;\n}\n", "static void *take(int a,\n                  int b)\n{\n}\n"
        self.assertEqual(self.complaints_about({"server/store/a.c": one, "server/front/b.c": other}), [])
        self.assertEqual(
            self.complaints_about({"server/store/a.c": one, "server/store/pg/b.c": other}),
            ["store: take is the name of several static functions: server/store/a.c:1, server/store/pg/b.c:1"],
        )

    def test_a_long_function_without_a_paragraph_is_reported(self):
        body = "    take();\n" * 13
        long = "int run(void)\n{\n%s}\n"
        self.assertEqual(
            self.complaints_about({"server/base/a.c": long % body}),
            ["server/base/a.c:1: run has 16 lines and no paragraph"],
        )
        self.assertEqual(self.complaints_about({"server/base/a.c": long % (body + "\n" + body)}), [])

    def test_too_many_parameters_are_reported(self):
        head = "int run(%s)\n{\n}\n"
        self.assertEqual(self.complaints_about({"server/base/a.c": head % ", ".join(["int (*f)(int, int)"] * 8)}), [])
        self.assertEqual(
            self.complaints_about({"server/base/a.c": head % ", ".join(["int a"] * 9)}),
            ["server/base/a.c:1: run has 9 parameters"],
        )


class Proofs(unittest.TestCase):
    def missing(self, threat, promise="`tests/integration/test_{a,b}.py`"):
        with tempfile.TemporaryDirectory() as root:
            for path, text in (
                ("docs/threat-model.md", "## Threats and limits\n\n| t | a | w | p |\n|---|---|---|---|\n| x | y | %s |\n" % threat),
                ("docs/testing.md", "## Where the hard promises are tested\n\n| p | t |\n|---|---|\n| x | %s |\n" % promise),
                ("server/base/hash.c", ""),
            ):
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            files = {"tests/unit/base/test_hash.c", "tests/integration/test_a.py", "tests/integration/test_b.py"}
            return list(proofs.missing(pathlib.Path(root), files))

    def test_tests_and_files_that_are_there_are_no_errors(self):
        self.assertEqual(self.missing("`base/hash.c`, `hash.c` | `test_hash`, `test_a.py`"), [])

    def test_missing_tests_and_sources_are_named(self):
        self.assertEqual(self.missing("`base/gone.c` | `test_gone`"),
                         ["threat-model.md: there is no test_gone", "threat-model.md: there is no server/base/gone.c"])
        self.assertEqual(self.missing("`base/` | nothing"), ["threat-model.md: no test proves: x"])
        self.assertEqual(self.missing("`base/` | `test_a`", "`tests/integration/test_{a,c}.py`"),
                         ["testing.md: there is no tests/integration/test_c.py"])


class Placement(unittest.TestCase):
    SETS = "HEARTH_PLACED(profile, DATA)\nHEARTH_PLACED(service, CATALOGUE)\nHEARTH_PLACED(migration, CATALOGUE)\n"
    TABLE = "| table | set | key | one row per | grows with | trimmed |\n|---|\n| `profile` | data |\n| `service`, `migration` | catalogue |\n"
    FIRST = "CREATE TABLE hearth_data.service (service_id int4 PRIMARY KEY);\nCREATE TABLE hearth_data.profile (service_id int4);\n"

    def complaints_about(self, later="", sets=SETS, table=TABLE):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root, "sql")
            folder.mkdir()
            files = {"placement.def": sets, "README.md": table, "0001_a.sql": self.FIRST, "0024_b.sql": later}
            for name, text in files.items():
                (folder / name).write_text(text)
            return list(placement.check(pathlib.Path(root)))

    def test_tables_that_are_placed_are_allowed(self):
        self.assertEqual(self.complaints_about(), [])

    def test_a_table_that_is_not_placed_is_reported(self):
        self.assertEqual(self.complaints_about("CREATE TABLE hearth_data.fresh (a int4);"),
                         ["fresh: placement.def says None, sql/README.md None"])
        self.assertEqual(self.complaints_about(table=self.TABLE.replace("| data |", "| catalogue |")),
                         ["profile: placement.def says DATA, sql/README.md CATALOGUE"])
        self.assertEqual(self.complaints_about(sets=self.SETS + "HEARTH_PLACED(gone, DATA)\n"),
                         ["no migration makes gone, which placement.def or sql/README.md names"])

    def test_statements_that_a_distributed_table_does_not_allow_are_reported(self):
        for later, what in (
            ("ALTER TABLE hearth_data.service ALTER a SET STORAGE EXTERNAL;", "alters the storage of a column"),
            ("ALTER SEQUENCE hearth_data.s RESTART;", "alters a sequence"),
            ("CREATE TRIGGER t BEFORE INSERT ON hearth_data.service EXECUTE FUNCTION f();", "makes a trigger"),
            ("ALTER TABLE hearth_data.profile ADD FOREIGN KEY (a) REFERENCES hearth_data.service;",
             "makes a foreign key that touches a data table"),
            ("ALTER TABLE hearth_data.service ADD b int4 REFERENCES hearth_data.profile;",
             "makes a foreign key that touches a data table"),
            ("CREATE UNIQUE INDEX i ON hearth_data.profile (ts);", "a key of profile without service_id: (ts)"),
        ):
            with self.subTest(later=later):
                self.assertEqual(self.complaints_about("-- a comment; with SET STORAGE\n" + later), ["sql/0024_b.sql: " + what])
        self.assertEqual(self.complaints_about("ALTER TABLE hearth_data.service ADD b int4 REFERENCES hearth_data.service;"), [])


class Distributed(unittest.TestCase):
    """Each rule reports a statement that breaks it, and accepts the way to write it."""

    SETS = {"profile": "DATA", "roll_state": "DATA", "segment": "DATA", "service": "CATALOGUE"}
    BROKEN = {
        "SELECT without a column": (
            "SELECT EXISTS (SELECT FROM hearth_data.profile)",
            "SELECT EXISTS (SELECT 1 FROM hearth_data.profile)",
        ),
        "a volatile call in RETURNING": (
            "INSERT INTO hearth_data.profile VALUES (1) RETURNING pg_advisory_xact_lock_shared(1)",
            "INSERT INTO hearth_data.profile VALUES (1) RETURNING service_id, coalesce(ts, 0)",
        ),
        "a volatile call in SET": (
            "UPDATE hearth_data.roll_state SET watermark = extract(epoch FROM clock_timestamp()) WHERE service_id = 1",
            "UPDATE hearth_data.roll_state SET watermark = greatest(watermark, $1) WHERE service_id = 1",
        ),
        "a lateral query with LIMIT or OFFSET": (
            "SELECT 1 FROM unnest($1) u (s) CROSS JOIN LATERAL (SELECT ts FROM hearth_data.profile WHERE service_id = u.s OFFSET 0) p",
            "SELECT 1 FROM unnest($1) u (s) CROSS JOIN LATERAL (SELECT ts FROM hearth_data.profile WHERE service_id = 7"
            " AND series_id = u.s OFFSET 0) p",
        ),
        "a row lock without service_id": (
            "SELECT 1 FROM hearth_data.segment WHERE t0 < $1 FOR UPDATE SKIP LOCKED",
            "SELECT 1 FROM hearth_data.segment WHERE service_id = $1 FOR UPDATE SKIP LOCKED",
        ),
        "ctid without service_id": (
            "DELETE FROM hearth_data.profile WHERE ctid = ANY (ARRAY(SELECT ctid FROM hearth_data.profile LIMIT 9))",
            "DELETE FROM hearth_data.profile WHERE service_id = 1 AND ctid = ANY ($1)",
        ),
        "a recursive query without service_id": (
            "WITH RECURSIVE s AS (SELECT ts FROM hearth_data.profile UNION ALL SELECT ts + 1 FROM s) SELECT min(ts) FROM s",
            "WITH RECURSIVE s AS (SELECT ts FROM hearth_data.profile WHERE service_id = 1 UNION ALL SELECT ts + 1 FROM s) SELECT 1 FROM s",
        ),
        "UNION ALL at the top": (
            "SELECT ts FROM hearth_data.profile UNION ALL SELECT t0 FROM hearth_data.segment",
            "SELECT * FROM (SELECT ts FROM hearth_data.profile UNION ALL SELECT t0 FROM hearth_data.segment) u",
        ),
        "NOT EXISTS of rows over parameters": (
            "SELECT u.s FROM unnest($1::int4[]) u (s) WHERE NOT EXISTS (SELECT 1 FROM hearth_data.profile WHERE service_id = u.s)",
            "DELETE FROM hearth_data.segment s WHERE service_id = 1 AND NOT EXISTS (SELECT 1 FROM hearth_data.profile p"
            " WHERE p.service_id = s.service_id)",
        ),
        "MERGE": (
            "MERGE INTO hearth_data.segment s USING (VALUES (1)) v (a) ON s.service_id = v.a WHEN MATCHED THEN DELETE",
            "INSERT INTO hearth_data.segment VALUES (1) ON CONFLICT (service_id) DO UPDATE SET t0 = excluded.t0",
        ),
        "a change of service_id": (
            "UPDATE hearth_data.segment SET t0 = 1, service_id = 2 WHERE service_id = 1",
            "UPDATE hearth_data.segment SET t0 = 1 WHERE service_id = 2",
        ),
        "DETACH CONCURRENTLY": (
            "ALTER TABLE hearth_data.profile DETACH PARTITION hearth_data.profile_20261120 CONCURRENTLY",
            "ALTER TABLE hearth_data.profile DETACH PARTITION hearth_data.profile_20261120",
        ),
    }

    def test_each_rule_has_a_statement_that_breaks_it(self):
        self.assertEqual(set(distributed.rules("", self.SETS)), set(self.BROKEN))

    def test_a_statement_breaks_the_rule_that_it_is_meant_to_break_and_no_other(self):
        for rule, (broken, sound) in self.BROKEN.items():
            with self.subTest(rule=rule):
                self.assertEqual(distributed.breaches(broken, self.SETS), [rule])
                self.assertEqual(distributed.breaches(sound, self.SETS), [])

    def test_literals_comments_and_statements_over_the_catalogue_are_no_breaches(self):
        for text in (
            "SELECT 'SELECT FROM' FROM hearth_data.profile -- FOR UPDATE",
            "SELECT EXISTS (SELECT FROM hearth_data.service) FOR UPDATE",
        ):
            self.assertEqual(distributed.breaches(text, self.SETS), [])


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=0).result.wasSuccessful())
