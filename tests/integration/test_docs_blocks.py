"""Code blocks of the documents: commands run against a real server, SQL against its database, JSON and YAML parse.

The client, curl, openssl, programs of PostgreSQL, perf and Go run as they are called. hearthd is not started a second
time: check-config judges its options. Programs of OTHERS do nothing: what stands around them in their blocks still runs.
A command may find nothing, because the reader's data and files are not here; a command that the client or the server
does not understand fails the test. A block that cannot run has a line `<!-- not run: REASON -->` before it; the counts
below do not let them grow unseen.
"""

import collections
import configparser
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import yaml

from pprof import Profile
from server import HEARTH, HEARTHD, ROOT, Cluster, Server, now_ms, server_environment, temporary_directory

# Raise these only for blocks that really cannot run.
MOST_MARKED = {"sh": 2, "sql": 6}  # most of them need Citus

# Programs that do nothing here, each with the reason.
ON_THIS_MACHINE = "it would install or change something on the machine"
BUILDS = "it compiles the tree, or runs the tests again"
READERS = "it is the reader's own"
NOT_HERE = "neither Debian nor this test needs it otherwise"
OTHERS = {
    "./dev": BUILDS, "cmake": BUILDS, "ninja": BUILDS, "build/bin/test_selector": BUILDS, "tests/lint/gen_docs.py": BUILDS,
    "build/bin/test_selector_golden": BUILDS, "server/package/image.sh": BUILDS,
    "/usr/bin/python3": BUILDS,  # run.py, which is not in the folder of this test
    "install": ON_THIS_MACHINE, "sudo": ON_THIS_MACHINE, "systemctl": ON_THIS_MACHINE,
    "docker": NOT_HERE, "podman": NOT_HERE, "skopeo": NOT_HERE, "helm": NOT_HERE, "kubectl": NOT_HERE, "dot": NOT_HERE,
    "java": NOT_HERE, "jcmd": NOT_HERE, "jq": NOT_HERE, "py-spy": NOT_HERE,
    "promtool": "test_packages.py runs it; prometheus.py has its rules",
    "cc": "test_client_library.py and test_install.py compile programs with the library", "pkg": "see cc",
    "./app": READERS, "./hearth_example": READERS, "node": READERS, "page-somebody": READERS,
}

SHELL = {"cd", "printf", "echo", "cat", "cp", "export", "umask", "base64", "date", "grep", "sed", "head", "sha256sum"}
GO = sorted(str(path) for path in pathlib.Path("/usr/lib").glob("go-*/bin/go"))
CHECK_OPTIONS = r"""bash -c 'case "$1" in migrate | scale-out) ;; *) set -- check-config "$@" ;; esac; exec %s "$@"' hearthd"""
# What a block may call besides: as what it runs, and what shows that it did not understand its arguments, in its errors or
# as its code.
WRAPPED = {
    "hearth": (HEARTH, None),
    "curl": ("/usr/bin/curl --fail-with-body -sS --max-time 9", re.compile(r"returned error: (400|404|405|415)")),
    "hearthd": (CHECK_OPTIONS % HEARTHD, None),
    "openssl": ("/usr/bin/openssl", re.compile(".")),
    **{name: (Cluster.program(name), re.compile(r"(unrecognized|invalid) option|syntax error|does not exist|too many"))
       for name in ("psql", "pg_dump", "pg_restore", "pg_basebackup")},
    "perf": (shutil.which("perf"), 129),
    "go": (GO[-1], re.compile("unknown command|flag provided but not defined")),
    **({"jq": (shutil.which("jq"), re.compile("compile error|Unknown"))} if shutil.which("jq") else {}),
}
BLOCK = re.compile(r"(?:^<!-- not run: ([^\n]+?) -->\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
USAGE = 2  # the client's exit code for what it does not understand, and for files that it cannot read
ONLY_THE_READER_HAS = re.compile(
    r"cannot open|No such file|there is no (process|token-file)|has no context|not a terminal|file is empty|"
    r"must have one line|\"ID\" is not"
)


class Block:
    def __init__(self, path, text, match):
        self.place = "%s:%d" % (path, text[: match.start(2)].count("\n") + 1)
        self.reason, self.language, self.code = match.groups()


def blocks():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text()
        yield from (Block(path.relative_to(ROOT), text, match) for match in BLOCK.finditer(text))


def programs(code):
    """The first words of all simple commands, without variables before them."""
    code = re.sub(r"\$\(\(.*?\)\)", "0", re.sub(r"\\\n", " ", code))
    found = set(re.findall(r"\$\((\w+)", code))
    quote, word, is_first, is_comment = "", "", True, False
    for c in re.sub(r"\$\([^()]*\)", "0", code):
        if is_comment:
            is_comment = c != "\n"
            is_first = True
        elif quote:
            quote = "" if c == quote else quote
            word += c
        elif c in "'\"":
            quote, word = c, word + c
        elif c == "#" and word == "":
            is_comment = True
        elif c in " \t\n|&;()":
            is_variable = re.match(r"[A-Za-z_]\w*=", word) is not None
            if word and is_first and not is_variable:
                found.add(word)
            is_first = is_first and (word == "" or is_variable) if c in " \t" else True
            word = ""
        else:
            word += c
    return found


def wrap(directory, name, command):
    """A program of this name that notes as a line how it ended, what it was called with, and the end of its errors."""
    path = pathlib.Path(directory) / name
    path.write_text('''#!/bin/bash
errors=$(mktemp)
timeout 10 %s "$@" 2>"$errors"
code=$?
cat "$errors" >&2
printf '%%s\\t%%s\\t%%s\\n' $code "%s ${*//[$'\\n\\t']/ }" "$(tail -n 3 "$errors" | tr '\\n\\t' '  ')" >>"$ENDED"
exit $code
''' % (command, name))
    path.chmod(0o755)


def is_misunderstood(code, command, errors):
    sign = WRAPPED[command.split(" ", 1)[0]][1]
    if isinstance(sign, int):
        return code == sign
    if sign is not None:
        return code != 0 and sign.search(errors) is not None
    return code == USAGE and not ONLY_THE_READER_HAS.search(errors)


def profile(minutes, *stacks):
    time_ns = (now_ms() - minutes * 60_000) * 1_000_000
    made = Profile([("cpu", "nanoseconds")], time_ns=time_ns, duration_ns=10_000_000_000)
    for stack, value in stacks:
        made.add(stack.split(";"), [value])
    return made.encode()


class Blocks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--builder=false")
        cls.addClassCleanup(cls.server.stop)
        stacks = ("main;main.handle;json.Marshal", 3_000_000_000), ("main;main.handle;db.Query", 1_000_000_000)
        cls.cpu = profile(5, *stacks)
        for service in ("api", "shop", "checkout", "postgres"):
            for region in ("eu", "us"):
                cls.server.push(cls.cpu, {"__name__": "process_cpu", "service_name": service, "region": region})
        cls.directory = pathlib.Path(temporary_directory())
        cls.bin = pathlib.Path(temporary_directory())
        for name in OTHERS:
            if not name.startswith("/"):
                nothing = (cls.directory if "/" in name else cls.bin) / name
                nothing.parent.mkdir(parents=True, exist_ok=True)
                nothing.write_text("#!/bin/sh\n")
                nothing.chmod(0o755)
        for name, (command, _) in WRAPPED.items():
            wrap(cls.bin, name, command)
        cls.postgres = cls.server.postgres_url()
        cls.blocks = list(blocks())

    def run_block(self, block):
        """[(exit code, command, errors)]"""
        ended = self.directory / "ended"
        ended.write_text("")
        for name in ("cpu.pb.gz", "before.pb.gz", "after.pb.gz", "saved.pb.gz", "cpu.pprof"):
            (self.directory / name).write_bytes(self.cpu)
        address = "127.0.0.1:%d" % self.server.port
        variables = {"PATH": "%s:%s" % (self.bin, os.environ["PATH"]), "ENDED": str(ended),
                     "HEARTH_URL": "http://" + address,
                     "XDG_CONFIG_HOME": str(self.directory), "HOME": str(self.directory), "TERM": "dumb",
                     "HEARTH_DATABASE_URL": self.postgres}
        run = re.search(r"host=(\S+)", self.postgres).group(1)
        code = block.code.replace("127.0.0.1:4040", address).replace("DIR/run", run)
        subprocess.run(["bash", "-c", code], cwd=self.directory, env=server_environment(variables),
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        lines = [line.split("\t") for line in ended.read_text().splitlines()]
        return [(int(code), command, errors) for code, command, errors in lines]

    def test_commands_are_understood(self):
        misunderstood, n_run, n_marked, n_commands, n_good = [], 0, 0, 0, 0
        others, unknown = collections.Counter(), []
        for block in self.blocks:
            if block.language != "sh":
                continue
            foreign = programs(block.code) - SHELL - WRAPPED.keys()
            others.update(foreign)
            unknown += ["%s: %s" % (block.place, name) for name in sorted(foreign - OTHERS.keys())]
            if block.reason:
                n_marked += 1
            else:
                ran = self.run_block(block)
                n_run += 1
                n_commands += len(ran)
                n_good += sum(code == 0 for code, _, _ in ran)
                misunderstood += ["%s: %s: %s" % (block.place, command[:120], errors) for code, command, errors in ran
                                  if is_misunderstood(code, command, errors)]
        print("%d blocks run with %d commands, of which %d ended with 0; %d marked as not run; of other programs: %s"
              % (n_run, n_commands, n_good, n_marked, dict(others.most_common())))
        self.assertEqual(misunderstood, [], "\n" + "\n".join(misunderstood))
        self.assertGreater(n_good, 0.4 * n_commands)  # most others find nothing
        self.assertLessEqual(n_marked, MOST_MARKED["sh"])
        self.assertEqual(unknown, [], "run them, or say in OTHERS why they are not run:\n" + "\n".join(unknown))
        self.assertEqual(OTHERS.keys() - others.keys() - WRAPPED.keys(), set(), "no block calls these any more")

    def test_syntax_that_no_program_understands_is_found(self):
        for code in ("hearth query tops", "hearthd --spol-dir x", "hearthd migrate --dryrun", "openssl req -nope",
                     "pg_dump --nope", "psql -h DIR/run -U hearth postgres -c '\\dt hearth_data.*' --nope",
                     "curl http://127.0.0.1:4040/nowhere", "pg_basebackup --nope", "perf record --nope",
                     "go nope", "hearthd scale-out --nope"):
            with self.subTest(code):
                block = Block("", "```sh\n%s\n```" % code, BLOCK.search("```sh\n%s\n```" % code))
                ((exit_code, command, errors),) = self.run_block(block)
                self.assertTrue(is_misunderstood(exit_code, command, errors), (exit_code, command, errors))

    def test_sql_runs(self):
        failed, n_run, n_marked = [], 0, 0
        for block in self.blocks:
            if block.language != "sql" or "sql-cookbook" in block.place:  # test_sql.py asks these, with their answers
                continue
            if block.reason:
                n_marked += 1
                continue
            done = subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.server.postgres_url()],
                                  input="BEGIN;\n" + block.code + "\nROLLBACK;\n", capture_output=True, text=True,
                                  env=server_environment({}))
            n_run += 1
            if done.returncode != 0:
                failed.append("%s: %s" % (block.place, done.stderr.strip()))
        print("%d blocks of SQL run, %d marked" % (n_run, n_marked))
        self.assertEqual(failed, [], "\n" + "\n".join(failed))
        self.assertGreater(n_run, 0)
        self.assertLessEqual(n_marked, MOST_MARKED["sql"])

    def test_json_and_yaml_parse(self):
        n = 0
        for block in self.blocks:
            with self.subTest(block.place):
                if block.language == "json":
                    json.loads(block.code)
                elif block.language == "yaml":
                    list(yaml.safe_load_all(block.code))
                n += block.language in ("json", "yaml")
        print("%d blocks of JSON and YAML" % n)
        self.assertGreater(n, 0)

    def test_examples_in_other_languages_have_right_syntax(self):
        n = collections.Counter()
        for block in self.blocks:
            with self.subTest(block.place):
                if block.language == "python":
                    compile(block.code, block.place, "exec")
                elif block.language == "js":
                    done = subprocess.run(["node", "--input-type=module", "--check"], input=block.code, text=True,
                                          capture_output=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                elif block.language in ("go", "c"):
                    check = [pathlib.Path(GO[-1]).with_name("gofmt")]
                    code = re.sub(r"^import (\(.*?^\)|[^\n]*)$", "", block.code, flags=re.M | re.S)  # before statements
                    if block.language == "c":  # statements, where ... is the reader's part
                        check = ["gcc", "-fsyntax-only", "-Wall", "-Werror", "-I", ROOT / "include", "-x", "c", "-"]
                        code = '#include "hearth/client.h"\nint main(void) {\n%s}\n' % code.replace("...", "return 1;")
                    done = subprocess.run(check, input=code, text=True, capture_output=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                elif block.language == "ini":
                    # postgresql.conf has no sections
                    configparser.ConfigParser(interpolation=None).read_string("[top]\n" + block.code)
                n[block.language] += 1
        for language in ("python", "js", "ini", "go", "c"):
            self.assertGreater(n[language], 0, language)


if __name__ == "__main__":
    unittest.main()
