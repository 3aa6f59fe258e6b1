"""Queries of `hearth` that find nothing say why, and what was probably meant."""

import fnmatch
import os
import pathlib
import re
import subprocess
import time
import unittest

from pprof import Profile
from server import HEARTH, Server, server_environment, temporary_directory
from test_cli import NO_DATA, OK, USAGE, hearth

SAMPLES = "process_cpu:samples:count::"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

# Command line ("|" between words), exit code, the last line of standard error with * for anything.
CASES = [
    ('top|{service_nam="gdu"}', NO_DATA, "there is no label service_nam; did you mean service_name[?]; `hearth query labels` lists them"),
    ('top|{service_name="gud"}', NO_DATA, 'there is no service "gud"; did you mean gdu[?]; `hearth query services` lists them'),
    ('flame|{service_name="xyz"}', NO_DATA, 'there is no service "xyz"; there are gdu, my-svc, old*'),
    ('query series|{region="us"}', NO_DATA, 'there is no region "us"; there are eu; `hearth query values region` lists them'),
    ('query labels|{service_name="old",region="eu"}', NO_DATA, 'no series matches all of {service_name="old",region="eu"}'),
    ("top|gud", NO_DATA, 'there is no service "gud"; did you mean gdu[?]; *'),
    ("top|gdu|--type|%s" % CPU, NO_DATA, "there are no profiles of the type %s; there are %s" % (CPU, SAMPLES)),
    ("top|gdu|--type|cpu", USAGE, "--type cpu is no type of this selection, which has: %s" % SAMPLES),
    ("top|old|--since|5h|--type|process_cpu", USAGE, "--type process_cpu is short for several types: %s, *" % CPU),
    ("top|old", NO_DATA, "no data in this range; the newest matching profile is of *Z, which --since 4h includes"),
    ("query types|--to|now-1w", NO_DATA, "no data in this range; the newest matching profile is of *"),
    ("query values|nosuch", NO_DATA, "there is no label nosuch; there are region, service_name; *"),
    ("query values|regoin", NO_DATA, "there is no label regoin; did you mean region[?]; *"),
    ("label-stats|regoin|gdu", NO_DATA, "there is no label regoin; did you mean region[?]; *"),
    ("timeline|gdu|--by|regoin", NO_DATA, "there is no label regoin; did you mean region[?]; *"),
    ("timeline|gdu|--function|mallocgc", NO_DATA, 'no selected stack trace contains the function "mallocgc"; names are exact: did you mean runtime.mallocgc[?]'),
    ("sandwich|mallocgc|gdu", NO_DATA, 'no selected stack trace contains the function "mallocgc"; names are exact: did you mean runtime.mallocgc[?]'),
    ("lines|a(b|gdu", NO_DATA, 'no selected stack trace contains the function "a(b"'),
    ("top|gdu|--search|nosuch", NO_DATA, "no row is left by --search and --offset"),
    ("top|gdu|--offset|100000", NO_DATA, "no row is left by --search and --offset"),
    ("top|gdu|--function|mallocgc", NO_DATA, "no data in this range that the filters leave; their names must be exact"),
    ("ready|--url|http://127.0.0.1:99999", USAGE, 'url "http://127.0.0.1:99999" is not *, with a port of 1 to 65535'),
    ("ready|--url|http://127.0.0.1:", USAGE, 'url "http://127.0.0.1:" is not *, with a port of 1 to 65535'),
    ("top|{service_name=gdu}", USAGE, 'unexpected "gdu", expected a quoted string, at offset 14'),
]


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.url = "http://127.0.0.1:%d" % cls.server.port
        cls.directory = temporary_directory()

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()

    def run_hearth(self, *arguments, **more):
        return hearth(*arguments, env={"HEARTH_URL": self.url}, **more)

    def upload(self, data, *arguments):
        path = os.path.join(self.directory, "profile")
        with open(path, "wb") as file:
            file.write(data)
        done = self.run_hearth("upload", path, *arguments)
        self.assertEqual(done.code, OK, done.err)

    def test_errors_name_the_mistake_and_the_correction(self):
        # An empty store says how to send the first profile.
        for command in (["top"], ["query", "types"], ["query", "series"], ["flame", "gdu"], ["profiles", "list"]):
            done = self.run_hearth(*command)
            self.assertEqual((done.code, done.out), (NO_DATA, ""))
            self.assertEqual(done.err.splitlines()[-1],
                             "hearth: there are no profiles yet; send one: hearth upload FILE --label service_name=NAME")

        # Three services; the profile of one is three hours old.
        text = b"main;query 30\nmain;gc 20\nmain;runtime.mallocgc 9\n"
        self.upload(text, "--label", "service_name=gdu", "--label", "region=eu")
        self.upload(text, "-l", "service_name=my-svc")
        old = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=time.time_ns() - 3 * 3600 * 10**9, duration_ns=10**10)
        old.add(["main", "x"], [3, 30_000_000])
        self.upload(old.encode(), "-l", "service_name=old", "--name", "process_cpu")
        for line, code, pattern in CASES:
            with self.subTest(line):
                command, *rest = line.split("|")
                done = self.run_hearth(*command.split(), *rest)
                self.assertEqual((done.code, done.out), (code, ""), done.err)
                self.assertTrue(fnmatch.fnmatchcase(done.err.splitlines()[-1], "hearth: " + pattern), done.err)

        # A bare word is a service, unless a family has that name.
        for service in ("gdu", "my-svc"):
            done = self.run_hearth("top", service, "-n", "1")
            self.assertEqual(done.err, 'selector: {service_name="%s"}\n' % service)
            self.assertRegex(done.out, r"\n +30 +50\.85% .* query\n")
        done = self.run_hearth("query", "types", "process_cpu")
        self.assertEqual((done.out, done.err), (SAMPLES + "\n", ""))
        self.assertEqual(self.run_hearth("query", "types", "gdu").out, SAMPLES + "\n")

        # A short type is completed.
        done = self.run_hearth("top", "old", "--since", "5h", "--type", "cpu")
        self.assertIn("type: %s\n" % CPU, done.err)
        self.assertRegex(done.out, r"30\.00 ms  100\.00% +30\.00 ms  100\.00%  x")

        # bash completes services, labels and types of the server.
        script = ('eval "$(hearth completion bash)"; COMP_WORDS=(hearth "$@"); COMP_CWORD=$#; _hearth; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        for words, offered in ((["top", "my"], ["my-svc"]), (["label-stats", "reg"], ["region"]),
                               (["top", "--type", "process_cpu:cpu"], [CPU]), (["task", "list", "--service", "ol"], ["old"])):
            done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=60,
                                  env=server_environment({"HEARTH_URL": self.url, "PATH": "%s:%s" % (os.path.dirname(HEARTH), os.environ["PATH"])}))
            self.assertEqual((done.stdout.split(), done.stderr), (offered, ""))

        # A word is not a service where profiles are deleted.
        self.assertEqual(self.run_hearth("admin", "erase", "gdu", "--all", "--dry-run").code, USAGE)
        done = self.run_hearth("top", "{service_name=gdu}")
        self.assertIn("note: the shell may have taken the quotes; put the selector in single quotes", done.err)

    def test_zones_are_one_for_reading_and_printing(self):
        berlin, utc = {"TZ": "Europe/Berlin"}, {"TZ": "UTC"}
        self.upload(b"main;query 30\n", "--label", "service_name=zone")
        for text, zone, more, from_text in (
            ("2026-07-01T12:30", berlin, [], "2026-07-01T12:30:00.000+02:00"),
            ("2026-07-01 12:30", berlin, [], "2026-07-01T12:30:00.000+02:00"),
            ("2026-01-01", berlin, [], "2026-01-01T00:00:00.000+01:00"),
            ("20260101", berlin, [], "2026-01-01T00:00:00.000+01:00"),
            ("2026-07-01T12:30Z", berlin, [], "2026-07-01T14:30:00.000+02:00"),
            ("2026-07-01T12:30-04:00", berlin, [], "2026-07-01T18:30:00.000+02:00"),
            ("2026-07-01T12:30", berlin, ["--utc"], "2026-07-01T12:30:00.000Z"),
            ("2026-07-01T12:30", utc, [], "2026-07-01T12:30:00.000Z"),
            ("1767225600", berlin, [], "2026-01-01T01:00:00.000+01:00"),
            ("2026-07-01T12:30", {"TZ": "Asia/Kolkata"}, [], "2026-07-01T12:30:00.000+05:30"),
        ):
            with self.subTest(text, zone=zone):
                done = hearth("query", "types", "--from", text, *more, env={"HEARTH_URL": self.url, **zone})
                self.assertIn("range: %s to " % from_text, done.err)

        # The axis of a chart names its zone, and its times can be given to --from.
        done = hearth("timeline", "zone", env={"HEARTH_URL": self.url, **berlin})
        self.assertRegex(done.err, r"times: CES?T \(\+0[12]00\); --utc prints UTC\n$")
        at = "%s-%s" % (time.strftime("%Y"), done.out.splitlines()[1].split("  ")[0])
        again = hearth("top", "zone", "--from", at, env={"HEARTH_URL": self.url, **berlin})
        self.assertIn("range: %s" % at.replace(" ", "T"), again.err)
        self.assertNotIn("times:", hearth("timeline", "zone", "--utc", env={"HEARTH_URL": self.url, **berlin}).err)

    def test_no_text_of_grpc_reaches_the_user(self):
        for url, cause in (("http://127.0.0.1:1", "Connection refused"), ("http://nowhere.invalid:1", "*")):
            done = hearth("top", "--url", url)
            self.assertEqual(done.code, 5)
            line = done.err.splitlines()[-1]
            self.assertTrue(fnmatch.fnmatchcase(line, "hearth: cannot reach %s: %s; is hearthd running there[?] --url or "
                                                "HEARTH_URL names another server" % (url[7:], cause)), line)
            self.assertIsNone(re.search("ipv4|C-ares|UNKNOWN|addresses", line), line)


class OddNames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--builder=false")
        cls.addClassCleanup(cls.server.stop)
        names = ["$(touch pwned)", "`touch pwned`", "a b", "a;b", "a'b", 'a"b', "a|b", "a&b", "a>b", "a*b", "~root", "-x", "a\\b"]
        for name in [*names, "plain-1.2/x"]:
            cls.server.push(Profile([("cpu", "nanoseconds")], time_ns=time.time_ns()).add(["main"], [1]).encode(),
                        {"service_name": name, "__name__": "process_cpu"})

    def run_hearth(self, *arguments):
        env = server_environment({"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port})
        return subprocess.run([HEARTH, *arguments], capture_output=True, text=True, timeout=60, env=env)

    def test_names_that_a_shell_would_run_or_split_are_not_offered(self):
        done = self.run_hearth("completion", "words", "--", "top", "")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("plain-1.2/x\n", "", OK))

    def test_names_for_completion_are_kept_for_the_user_alone_and_for_seconds(self):
        cache = pathlib.Path(temporary_directory())
        of = {"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port, "XDG_CACHE_HOME": str(cache)}
        offer = lambda **more: hearth("completion", "words", "--", "top", "p", env={**of, **more}).out
        self.assertEqual(offer(), "plain-1.2/x\n")
        (kept,) = (cache / "hearth").iterdir()
        self.assertEqual((kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777), (0o600, 0o700))

        # The file is read again, for the same question only.
        question = kept.read_text().splitlines()[0]
        kept.write_text(question + "\np-kept\n")
        self.assertEqual(offer(), "p-kept\n")
        self.assertEqual(offer(HEARTH_TENANT="other"), "plain-1.2/x\n")
        self.assertNotEqual(kept.read_text().splitlines()[0], question)

        # Not when it is old, and not when others can read it; both are replaced.
        for spoil in (lambda: os.utime(kept, (1, 1)), lambda: kept.chmod(0o644)):
            kept.write_text(question + "\np-kept\n")
            spoil()
            self.assertEqual(offer(), "plain-1.2/x\n")
            self.assertEqual(kept.stat().st_mode & 0o777, 0o600)

    def test_a_service_with_a_dot_or_a_slash_is_not_taken_for_a_file(self):
        done = self.run_hearth("flame", "plain-1.2/x")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn("main", done.stdout)


if __name__ == "__main__":
    unittest.main()
