"""Each command that prints a table, in each format, against a real server: the format parses and has the documented columns."""

import csv
import io
import json
import re
import unittest
from pathlib import Path

import yaml

from pprof import Profile
from server import Cluster, Server, now_ms, temporary_directory
from test_cli import NO_DATA, OK, hearth
from test_cli_table import COMMANDS, ROOT, STRING

TASK = "oncpu-1763546400000-5f0c2b81d4e99a17"
SHOP = ["--service", "shop", "--instance", "pod-1"]

# Arguments of commands that need some.
ARGUMENTS = {
    "import pyroscope": ["{url}"], "diff": ["shop", "other"], "lines": ["main.leaf", "shop"],
    "label-stats": ["pod"], "query values": ["pod"],
    "agents instances": ["shop"], "agents processes": ["shop"], "task log": [TASK], "task segments": [TASK],
    "task schedules": [TASK], "task uploads": [TASK], "policy dry-run": ["shop", "-f", "{policy}"], "policy monitored": ["shop"],
    "policy series": ["shop"], "policy history": ["shop"], "network topology": SHOP, "network series": SHOP,
    "network requests": SHOP, "rules set": ["profiles_shop", '{service_name="shop"}', "--id", "{rule}", "--type", "cpu"],
    "rules get": ["{rule}"], "admin retention set": ["raw", "14d"], "admin retention reset": ["raw"],
    "admin applications show": ["shop"], "admin applications set": ["shop", "--owner", "team"],
    "admin applications rule add": ["dev", '{env="dev"}', "--profiling", "off"],
}

# Nothing in the store for them: tests of agents have data.
NOTHING_TO_LIST = {words for words in COMMANDS if words.split()[0] in ("agents", "task", "policy", "network")} | {"changes"}


def write_file(directory, name, content):
    path = Path(directory, name)
    path.write_bytes(content)
    return str(path)


def documented_columns():
    """The columns of each command, but for bars, from columns.def."""
    columns, of = {}, []
    for line in (ROOT / "clients/cli/output/columns.def").read_text().splitlines():
        table = re.match(rf"TABLE\({STRING}\)", line)
        column = re.match(rf"COLUMN\({STRING}, (\w+), ", line)
        if table:
            of = table.group(1).split("|")
            columns.update((words, []) for words in of)
        elif column and column.group(2) != "BAR":
            for words in of:
                columns[words].append(column.group(1))
    return columns


COLUMNS = documented_columns()
TABLES = [words for words, keys in COMMANDS.items() if {"@table", "table-output", "diff-output"} & set(keys.split())]


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.server = Server(database_url=cls.cluster.url())
        cls.addClassCleanup(cls.server.stop)
        directory = temporary_directory()
        cls.env = {"HEARTH_URL": "http://127.0.0.1:%d" % cls.server.port, "XDG_CONFIG_HOME": directory}
        for value, service in ((5, "shop"), (9, "shop"), (7, "other")):
            profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000)
            profile.add(["main.root", "main.leaf"], [1, value * 1000], {"span_id": "%016x" % value})
            path = write_file(directory, "%d.pb.gz" % value, profile.encode())
            cls.run_hearth("upload", path, "-l", "service_name=" + service, "-l", 'pod=a "b"\\,%d' % value)
        rule = cls.run_hearth("rules", "set", "profiles_shop", '{service_name="shop"}', "--type", "cpu", "-o", "json")
        cls.made = {
            "{url}": cls.env["HEARTH_URL"], "{policy}": write_file(directory, "policy.yaml", b"policy: []\n"),
            "{rule}": json.loads(rule.out)["rule"]["id"],
        }
        cls.run_hearth("admin", "applications", "set", "shop", "--owner", "team")
        cls.run_hearth("context", "add", "one", "--url", "http://127.0.0.1:1")
        cls.run_hearth("context", "add", "two", "--url", "http://127.0.0.1:2", "--tenant", "shop")

    @classmethod
    def run_hearth(cls, *arguments):
        return hearth(*arguments, env=cls.env)

    def listed(self, words, *options):
        """What a command prints; "" if there is nothing that it could list."""
        arguments = [self.made.get(text, text) for text in ARGUMENTS.get(words, [])]
        done = self.run_hearth(*words.split(), *arguments, *options)
        self.assertIn(done.code, (OK, NO_DATA) if words in NOTHING_TO_LIST else (OK,), done.err)
        return done.out

    def test_each_table_has_documented_columns(self):
        self.assertGreaterEqual(len(TABLES), 60)
        self.assertEqual(set(TABLES), set(COLUMNS))

    def test_each_format_of_each_command_parses_and_has_these_columns(self):
        n_rows = dict.fromkeys(TABLES, 0)
        for words in TABLES:
            columns = COLUMNS[words]
            with self.subTest(words, format="csv"):
                out = self.listed(words, "-o", "csv")
                rows = list(csv.reader(io.StringIO(out, newline="")))
                self.assertEqual(rows[:1], [columns] if out else [])
                self.assertEqual({len(row) for row in rows} - {len(columns)}, set())
                n_rows[words] = max(len(rows) - 1, 0)
            with self.subTest(words, format="tsv"):
                lines = self.listed(words, "-o", "tsv").splitlines()
                self.assertEqual([line.split("\t") for line in lines[:1]], [columns] if lines else [])
                self.assertEqual({line.count("\t") + 1 for line in lines} - {len(columns)}, set())
            with self.subTest(words, format="jsonl"):
                rows = [json.loads(line) for line in self.listed(words, "-o", "jsonl").splitlines()]
                self.assertEqual([list(row) for row in rows], [columns] * len(rows))
                self.assertEqual(bool(rows), n_rows[words] > 0)
            with self.subTest(words, format="yaml"):
                rows = yaml.safe_load(self.listed(words, "-o", "yaml")) or []
                self.assertEqual([list(row) for row in rows], [columns] * len(rows))
                self.assertEqual(bool(rows), n_rows[words] > 0)
            with self.subTest(words, format="json"):
                out = self.listed(words, "-o", "json")
                self.assertIsInstance(json.loads(out or "{}"), dict)
        without_rows = {words for words, n in n_rows.items() if n == 0} - NOTHING_TO_LIST
        self.assertEqual(without_rows, {
            "uploads list", "admin erasures", "admin errors", "admin targets", "admin tokens list", "admin users list",
            "admin grants list", "admin scale-out"})

    def test_columns_and_headers_are_chosen_for_each_command(self):
        for words in TABLES:
            last, first = COLUMNS[words][-1], COLUMNS[words][0]
            with self.subTest(words):
                chosen = list(csv.reader(io.StringIO(self.listed(words, "-o", "csv", "--columns", last + "," + first), newline="")))
                self.assertIn(chosen[:1], [[[last, first]], []] if words in NOTHING_TO_LIST else [[[last, first]]])
                table = self.listed(words, "--columns", first)
                wide = self.listed(words, "-o", "wide", "--no-headers", "--columns", first)
                self.assertEqual(len(wide.splitlines()), len(chosen[1:]), wide)
                self.assertGreaterEqual(len(table.splitlines()), len(chosen[1:]), table)


if __name__ == "__main__":
    unittest.main()
