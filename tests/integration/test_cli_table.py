"""The table of commands and options of `hearth`: help, refusals, "did you mean". No server is needed."""

import fnmatch
import os
import random
import re
import shlex
import shutil
import subprocess
import unittest

from server import HEARTH, ROOT, server_environment

OK, FAILED, USAGE = range(3)
STRING = r'"((?:[^"\\]|\\.)*)"'


def table(name):
    return (ROOT / "clients/cli" / name).read_text()


SETS = dict(re.findall(rf"^SET\({STRING}, {STRING}\)", table("options.def"), re.M))
FLAGS = re.findall(rf'^OPTION\({STRING}, (\w+), [\w.\[\]]+, "(--[a-z-]+)"', table("options.def"), re.M)
ROWS = re.findall(rf"^COMMAND\({STRING}, {STRING}, \w+, \w+, \w+, \w+, {STRING}, ", table("commands.def"), re.M)
COMMANDS = {words: keys for words, _, keys in ROWS}


def taken(keys):
    """The flags that a command takes."""
    all_keys = set()
    for key in keys.split():
        all_keys |= set(SETS[key[1:]].split()) if key in {"@" + name for name in SETS} else {key}
    return {flag for key, _, flag in FLAGS if key in all_keys}


def hearth(*arguments, **variables):
    done = subprocess.run([HEARTH, *arguments], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          env=server_environment({"TZ": "UTC", "HEARTH_URL": "http://127.0.0.1:1", **variables}))
    return done.returncode, done.stdout, done.stderr


def some_of_each(pairs):
    """Pairs of a command and an option in which each command and each option occurs; all of them are many processes."""
    chosen, words_seen, flags_seen = [], set(), set()
    for words, flag in random.Random(17).sample(pairs, len(pairs)):
        if words not in words_seen or flag not in flags_seen:
            chosen.append((words, flag))
            words_seen.add(words)
            flags_seen.add(flag)
    return chosen


# Recorded cases: command line, exit code, the last line of standard error with * for anything.
CASES = [
    ("fly", USAGE, "hearth: there is no such command: fly; try hearth --help"),
    ("tpo", USAGE, "hearth: there is no such command: tpo; did you mean top?; try hearth --help"),
    ("flam", USAGE, "hearth: there is no such command: flam; did you mean flame?; try hearth --help"),
    ("query everything", USAGE, "hearth: there is no such query command: everything; try hearth query --help"),
    ("task craete", USAGE, "hearth: there is no such task command: craete; did you mean create?; try hearth task --help"),
    ("admin tokens make", USAGE, "hearth: there is no such admin tokens command: make; try hearth admin tokens --help"),
    ("rules fly", USAGE, "hearth: there is no such rules command: fly; try hearth rules --help"),
    ("query types --frobnicate", USAGE, "hearth: there is no option --frobnicate; try hearth query types --help"),
    ("query types --frobnicate=1", USAGE, "hearth: there is no option --frobnicate; try hearth query types --help"),
    ("top --limt 3", USAGE, "hearth: there is no option --limt; did you mean --limit?; try hearth top --help"),
    ("top --json", USAGE, "hearth: there is no option --json; did you mean -o json?; try hearth top --help"),
    ("query series --csv", USAGE, "hearth: there is no option --csv; did you mean -o csv?; try hearth query series --help"),
    ("-x", USAGE, "hearth: there is no option -x; try hearth --help"),
    ("--frobnicate 1 query types", USAGE, "hearth: there is no option --frobnicate; try hearth --help"),
    ("flame {} --duration 1m", USAGE, "hearth: flame does not take --duration: it is for trace, task create; *"),
    ("top --by version", USAGE, "hearth: top does not take --by: it is for timeline, *; did you mean --by-kind?; *"),
    ("flame --limit 3", USAGE, "hearth: flame does not take --limit: it is for top, diff, changes, *"),
    ("query values pod --step 2m", USAGE, "hearth: query values does not take --step: *"),
    ("flame --step 1m", USAGE, "hearth: flame does not take --step: *"),
    ("top --min-percent 30", USAGE, "hearth: top does not take --min-percent: *"),
    ("top --dry-run", USAGE, "hearth: top does not take --dry-run: it is for import pyroscope, admin erase, admin scale-out; *"),
    ("top --yes", USAGE, "hearth: top does not take --yes: it is for admin erase; *"),
    ("top --materialize x", USAGE, "hearth: top does not take --materialize: it is for sql; *"),
    ("top --processes 4", USAGE, "hearth: top does not take --processes: it is for admin sizing; *"),
    ("upload x --since 4h", USAGE, "hearth: upload does not take --since: *"),
    ("upload x -o json", USAGE, "hearth: upload does not take -o: *"),
    ("version -o json", USAGE, "hearth: version does not take -o: *"),
    ("flame --id a", USAGE, "hearth: flame does not take --id: it is for upload, uploads create, rules set; *"),
    ("admin status --explain", USAGE, "hearth: admin status does not take --explain: *"),
    ("query types --since", USAGE, "hearth: --since needs a value: 1h; try hearth query types --help"),
    ("query top --limit", USAGE, "hearth: --limit needs a value: N; try hearth query top --help"),
    ("query top -o", USAGE, "hearth: -o needs a value: FMT; try hearth query top --help"),
    ("query top --limit=0", USAGE, 'hearth: "0" is not a value for --limit, which takes N; *'),
    ("query top -nmany", USAGE, 'hearth: "many" is not a value for -n, which takes N; *'),
    ("flame --min-percent 101", USAGE, 'hearth: "101" is not a value for --min-percent, which takes P; *'),
    ("flame --max-nodes=-1", USAGE, 'hearth: "-1" is not a value for --max-nodes, which takes N; *'),
    ("query types -o xml", USAGE, 'hearth: "xml" is not a value for -o, which takes table, wide, json, jsonl, csv, tsv or yaml; *'),
    ("query types -o jsno", USAGE, 'hearth: "jsno" is not a value for -o, *; did you mean json?; *'),
    ("query top -o collapsed", USAGE, 'hearth: "collapsed" is not a value for -o, which takes table, wide, json, *; hearth flame takes it; *'),
    ("query top -o pprof=x", USAGE, 'hearth: "pprof=x" is not a value for -o, which takes table, wide, json, *; hearth flame takes it; *'),
    ("query top -o json=x", USAGE, 'hearth: "json=x" is not a value for -o, which takes table, wide, json, jsonl, csv, tsv or yaml; did you mean json?; *'),
    ("query flamegraph -o htm", USAGE, 'hearth: "htm" is not a value for -o, *; did you mean html?; *'),
    ("flame -o html=", USAGE, 'hearth: "html=" is not a value for -o, which takes table, json, collapsed, *'),
    ("flame -o json=x", USAGE, 'hearth: "json=x" is not a value for -o, *'),
    ("flame -o pprof", USAGE, 'hearth: "pprof" is not a value for -o, *'),
    ("query profile --output pprof=", USAGE, 'hearth: "pprof=" is not a value for --output, which takes table, json, *'),
    ("query top --explain=yaml", USAGE, 'hearth: "yaml" is not a value for --explain; try hearth query top --help'),
    ("upload x --label region", USAGE, 'hearth: "region" is not a value for --label, which takes K=V; *'),
    ("upload x -l =eu", USAGE, 'hearth: "=eu" is not a value for -l, which takes K=V; *'),
    ("upload x --time later", USAGE, 'hearth: "later" is not a value for --time, which takes now or keep; *'),
    ("upload x y --id a", USAGE, "hearth: --id requires exactly one file; try hearth upload --help"),
    ("query types --timeout soon", USAGE, "hearth: the timeout must be a duration like 90s, at least 1ms"),
    ("upload", USAGE, "hearth: upload: FILE is missing; usage: hearth upload FILE... [OPTIONS]; *"),
    ("query values", USAGE, "hearth: query values: LABEL is missing; usage: hearth query values LABEL [[]SELECTOR] [[]OPTIONS]; *"),
    ("policy get", USAGE, "hearth: policy get: SERVICE is missing; usage: hearth policy get SERVICE [[]OPTIONS]; *"),
    ("query top {a= b}", USAGE, 'hearth: query top: "b}" is one argument too many; quote the selector: it is one argument; *'),
    ("whoami me", USAGE, 'hearth: whoami: "me" is one argument too many; usage: hearth whoami [[]OPTIONS]; *'),
    ("whoami -- --me", USAGE, 'hearth: whoami: "--me" is one argument too many; *'),
    ("help topp", USAGE, "hearth: there is no such command: topp; did you mean top?; *"),
    ("help top fly", USAGE, "hearth: there is no such top command: fly; *"),
]


class Table(unittest.TestCase):
    def test_mistakes_are_named_with_the_likely_intention(self):
        for line, code, pattern in CASES:
            with self.subTest(line):
                got, out, err = hearth(*line.split(" "))
                self.assertEqual((got, out), (code, ""), err)
                pattern = pattern.replace(" [OPTIONS]", " [[]OPTIONS]")
                self.assertTrue(fnmatch.fnmatchcase(err.splitlines()[-1], pattern), err)

    def test_each_command_refuses_options_of_others(self):
        # The first option of a flag decides, as in the parser for commands that take none of them.
        is_switch = {flag: kind in ("SWITCH", "EXPLAIN") for _, kind, flag in reversed(FLAGS)}
        pairs = [(words, flag) for words, keys in COMMANDS.items() for flag in sorted(is_switch) if flag not in taken(keys)]
        self.assertGreater(len(pairs), 10_000)
        if not os.environ.get("HEARTH_TEST_LONG"):
            pairs = some_of_each(pairs)
        for words, flag in pairs:
            with self.subTest(words, flag=flag):
                code, out, err = hearth(*words.split(), flag, *([] if is_switch[flag] else ["1"]))
                self.assertEqual((code, out), (USAGE, ""))
                self.assertIn("hearth: %s does not take %s: it is for " % (words, flag), err)

    def test_each_command_has_help_with_two_examples_in_80_columns(self):
        self.assertGreater(len(COMMANDS), 90)
        for words, keys in COMMANDS.items():
            with self.subTest(words):
                code, out, err = hearth(*words.split(), "--help")
                self.assertEqual((code, err), (OK, ""))
                self.assertTrue(out.startswith("usage: hearth " + words), out)
                for flag in taken(keys):
                    self.assertIn(flag, out)
                head, examples = out.split("\nExamples\n")
                self.assertEqual(max(map(len, head.splitlines())) > 80, False, head)
                self.assertEqual(len(set(examples.splitlines())), 2, examples)
                self.assertLessEqual(max(map(len, examples.splitlines())), 80, examples)

    def test_examples_are_command_lines_that_the_table_accepts(self):
        refusals = re.compile("does not take|there is no (option|such)|is not a value|is missing|too many|needs a value")
        for words, *examples in re.findall(rf"^COMMAND\({STRING}, .*?, {STRING}, {STRING}\)$", table("commands.def"), re.M):
            for example in (text.replace('\\"', '"') for text in examples):
                with self.subTest(example):
                    line = shlex.shlex(example, posix=True, punctuation_chars="|;<>")
                    line.whitespace_split = True
                    parts = list(line)
                    parts = parts[parts.index("hearth") + 1:]
                    ends = [i for i, part in enumerate(parts) if part in ("|", "||", ";", ">", "<")]
                    if words not in ("record", "ready"):  # would record, would wait
                        self.assertNotRegex(hearth(*parts[:min(ends, default=len(parts))])[2], refusals)

    def test_the_manual_has_the_version_of_each_option(self):
        rows = dict(re.findall(rf"^SINCE\({STRING}, {STRING}\)$", table("since.def"), re.M))
        self.assertRegex(rows[""], r"^\d+\.\d+\.\d+$")
        self.assertLessEqual(set(rows) - {""}, set(COMMANDS) | {flag for _, _, flag in FLAGS})
        code, out, _ = hearth("help", "manual")
        lines = [line.split(None, 1) for line in out.split("\nSince which version\n")[1].splitlines()]
        self.assertEqual((code, lines), (OK, [[version, name or "all others"] for name, version in rows.items()]))

    def test_help_is_found_where_people_look_for_it(self):
        overview = hearth("--help")
        self.assertEqual(overview[0], OK)
        self.assertEqual(hearth("help"), overview)
        self.assertEqual(hearth("-h"), overview)
        self.assertEqual(hearth(), (USAGE, overview[1], ""))
        self.assertEqual(hearth("help", "query", "top"), hearth("query", "top", "{", "-h"))
        self.assertEqual(hearth("help", "task"), hearth("task", "--help"))
        self.assertEqual(hearth("task"), (USAGE, hearth("task", "--help")[1], ""))
        self.assertIn("0 done, 1 failed, 2 usage, 3 no data, 4 not allowed, 5 server or network", overview[1])

    def test_the_overview_names_every_command(self):
        out = hearth("--help")[1]
        for words in COMMANDS:
            first, *more = words.split()
            self.assertRegex(out, r"(?m)^  %s\b" % first)
            self.assertRegex(out, r"\b%s\b" % (more or [first])[0])

    def test_topics_are_printed_within_80_columns(self):
        for topic in re.findall(r"(?m)^  (\S+)", hearth("help", "topics")[1]):
            with self.subTest(topic):
                code, out, err = hearth("help", topic)
                self.assertEqual((code, err), (OK, ""))
                self.assertLessEqual(max(map(len, out.splitlines())), 80)
        manual = hearth("help", "manual")[1]
        self.assertEqual(hearth("--help-all"), (OK, manual, ""))
        for words in COMMANDS:
            self.assertIn("usage: hearth %s" % words, manual)

    def test_the_version_is_printed_as_hearthd_prints_it(self):
        for arguments in (["version"], ["--version"], ["top", "--version"]):
            code, out, err = hearth(*arguments)
            self.assertEqual((code, err), (OK, ""))
            self.assertRegex(out, r"^hearth \d+\.\d+\.\d+\n$")

    def test_completion_offers_what_may_follow(self):
        for words, offered in (
            (["fl"], ["flame"]), (["query", ""], "services types labels values series timeline profile top flamegraph go-pgo exemplars cardinality".split()),
            (["task", "cr"], ["create"]), (["task", "create", "o"], ["oncpu", "offcpu"]), (["top", "--by"], ["--by-kind"]),
            (["top", "--by-kind", "l"], ["line"]), (["top", "--columns", "name,total_"], ["name,total_percent"]), (["--url", "x", "top", "-o", ""], "table wide json jsonl csv tsv yaml".split()),
            (["query", "profile", "-o", "p"], ["pprof="]), (["flame", "--limi"], []), (["admin", "retention", ""], ["show", "set", "reset"]),
            (["rules", "s"], ["set"]), (["upload", ""], []), (["nothing", ""], []), (["top", "g"], []),
        ):
            with self.subTest(words):
                self.assertEqual(hearth("completion", "words", "--", *words), (OK, "".join(one + "\n" for one in offered), ""))
        self.assertEqual(hearth("completion", "csh")[0], USAGE)
        for shell in ("bash", "zsh", "fish"):
            code, script, err = hearth("completion", shell)
            self.assertEqual((code, err), (OK, ""))
            if shutil.which(shell) is not None:
                subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=60)

    def test_options_of_one_flag_agree_about_a_value(self):
        """The words of a command line are told apart before the command is known, unless it stands before them."""
        kinds = {}
        for _, kind, flag in FLAGS:
            kinds.setdefault(flag, set()).add(kind in ("SWITCH", "EXPLAIN"))
        self.assertEqual([flag for flag, found in kinds.items() if len(found) > 1], ["--wait"])

    def test_the_command_decides_whether_wait_has_a_value(self):
        self.assertIn("--wait needs a value: 60s", hearth("ready", "--wait")[2])
        self.assertEqual(hearth("ready", "--wait", "1ms", "--url", "http://127.0.0.1:1")[0], 5)
        self.assertIn("one argument too many", hearth("uploads", "show", "a", "--wait", "1ms")[2])

    def test_keys_of_commands_are_those_of_options(self):
        known = {key for key, _, _ in FLAGS} | {"@" + name for name in SETS} | {"sizing"}
        for words, keys in COMMANDS.items():
            self.assertEqual(set(keys.split()) - known, set(), words)
            flags = [flag for key, _, flag in FLAGS if key in keys.split()]
            self.assertEqual(len(flags), len(set(flags)), words)
        for keys in SETS.values():
            self.assertEqual(set(keys.split()) - known, set())


if __name__ == "__main__":
    unittest.main()
