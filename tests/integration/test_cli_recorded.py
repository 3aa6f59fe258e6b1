"""Recorded runs of `hearth`: command, output, exit code, as tests/cli/README.md says."""

import fcntl
import fnmatch
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
import unicodedata
import unittest

from test_cli_table import COMMANDS
from server import HEARTH, ROOT, Server, server_environment, temporary_directory

CASES = sorted((ROOT / "tests/cli").glob("*.cases"))
CHARACTER = re.compile(r"<U\+([0-9A-F]{4,6})>")


def plain(text):
    """Characters that have no picture as <U+XXXX>; lines end where they end."""
    return "".join(
        f"<U+{ord(c):04X}>" if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c for c in text)


def matches(pattern, line):
    return line == pattern or ("*" in pattern and fnmatch.fnmatchcase(line, re.sub(r"[\[?]", "[\\g<0>]", pattern)))


class Case:
    """A paragraph of a file."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.comments = [line for line in self.lines if line.startswith("#")]
        (self.command,) = [line for line in self.lines if not line.startswith(("#", ">", "!", "="))]
        self.out = [line[2:] for line in self.lines if line.startswith(">")]
        self.err = [line[2:] for line in self.lines if line.startswith("!")]
        self.code = int(([line[2:] for line in self.lines if line.startswith("=")] or ["0"])[0])

    def run(self, url, guarded, root):
        """(code, lines of standard output, lines of standard error)"""
        words = shlex.split(CHARACTER.sub(lambda m: chr(int(m[1], 16)), self.command.replace("$GUARDED", guarded)))
        width = int(words.pop(0)[1:]) if words[0].startswith("@") else None
        variables = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "xterm", "PAGER": "cat", "HEARTH_URL": url,
                     "XDG_CONFIG_HOME": root}
        while "=" in words[0]:
            name, value = words.pop(0).split("=", 1)
            variables[name] = value
        assert words.pop(0) == "hearth", self.command
        for name in ("NO_COLOR", "CLICOLOR_FORCE", "LESS"):
            variables.setdefault(name, "")
        run = on_terminal if width else in_pipe
        code, out, err = run([HEARTH, *words], server_environment(variables), *([width] if width else []))
        return code, plain(out).splitlines(), plain(err).splitlines()

    def fits(self, code, out, err):
        pairs = [(self.out, out)] + ([(self.err, err)] if self.err else [])
        return code == self.code and all(
            len(want) == len(got) and all(map(matches, want, got)) for want, got in pairs)

    def recorded(self, code, out, err):
        keep = lambda want, got: [w if w is not None and matches(w, g) else g
                                  for w, g in zip(want + [None] * (len(got) - len(want)), got)]
        lines = self.comments + [self.command]
        lines += ["> " + line if line else ">" for line in keep(self.out, out)]
        lines += ["! " + line if line else "!" for line in keep(self.err, err)] if self.err or (code and not out) else []
        return "\n".join(lines + (["= %d" % code] if code else []))


def in_pipe(command, env):
    done = subprocess.run(command, env=env, cwd=ROOT / "tests/cli", capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def on_terminal(command, env, width):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 12, width, 0, 0))
    with subprocess.Popen(command, env=env, cwd=ROOT / "tests/cli", stdout=theirs, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as child:
        os.close(theirs)
        data = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            data += part
        err = child.stderr.read()
    os.close(ours)
    return child.returncode, data.decode().replace("\r\n", "\n"), err.decode()


def read_cases(path):
    return [Case(text) for text in re.split(r"\n\n+", path.read_text().strip())]


class CliRecorded(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.root = temporary_directory()
        cls.server = Server("--listen", "127.0.0.1:0?auth=token")
        cls.url, cls.guarded = ("http://127.0.0.1:" + port for port in re.findall(r"msg=listening addr=127\.0\.0\.1:(\d+)", cls.server.log()))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_each_recorded_run_prints_the_recorded_output(self):
        self.assertTrue(CASES)
        for path in CASES:
            records = []
            for case in read_cases(path):
                with self.subTest(case.command, file=path.name):
                    code, out, err = case.run(self.url, self.guarded, self.root)
                    records.append(case.recorded(code, out, err))
                    if not os.environ.get("HEARTH_RECORD"):
                        self.assertTrue(case.fits(code, out, err), "\n%s\n%s" % (records[-1], "\n".join(err)))
            if os.environ.get("HEARTH_RECORD"):
                path.write_text("\n\n".join(records) + "\n")

    def test_each_command_and_each_exit_code_has_a_case(self):
        cases = [case for path in CASES for case in read_cases(path)]
        shown = [case.command.split("hearth ", 1)[-1].split() for case in cases]
        missing = set(COMMANDS)
        for words in shown:
            # The longest command that the line begins with.
            missing.discard(max((each for each in COMMANDS if words[:len(each.split())] == each.split()), key=len, default=""))
        self.assertEqual(sorted(missing), [])
        self.assertEqual({case.code for case in cases}, set(range(6)))


if __name__ == "__main__":
    unittest.main()
