"""`hearth top FILE` and `hearth diff FILE FILE`: files of this machine, without any server."""

import collections
import json
import os
import pathlib
import subprocess
import unittest

from pprof import Decoded, Profile
from server import HEARTH, SHARED, server_environment, temporary_directory
from terminal import Terminal
from test_cli import FAILED, NO_DATA, OK, USAGE

CPU = "process_cpu:cpu:nanoseconds"


class LocalFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = temporary_directory()
        cls.base = cls.write("base.pb", {"main;parse": 60, "main;render": 30, "main;gone": 10})
        cls.now = cls.write("now.pb", {"main;parse": 120, "main;render": 40, "main;fresh": 40})
        cls.zero = cls.write("zero.pb", {"main;parse": 0})

    @classmethod
    def write(cls, name, stacks):
        profile = Profile([("samples", "count"), ("cpu", "nanoseconds")])
        for stack, count in stacks.items():
            profile.add(stack.split(";"), [count, count * 10_000_000])
        path = os.path.join(cls.root, name)
        with open(path, "wb") as file:
            file.write(profile.encode())
        return path

    def run_hearth(self, *arguments, code=OK, **options):
        env = server_environment({"HEARTH_URL": "http://127.0.0.1:1", "COLUMNS": "120"})
        done = subprocess.run([HEARTH, *arguments], capture_output=True, text=True, timeout=60, env=env, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_two_files_are_compared_without_a_note_on_noise(self):
        lines = self.run_hearth("diff", self.base, self.now).stdout.splitlines()
        rows = {line.split()[-1]: line.split()[:3] for line in lines[2:-2]}
        self.assertEqual(rows, {
            "fresh": ["0.00%", "20.00%", "+20.00%"],
            "gone": ["10.00%", "0.00%", "-10.00%"],
            "main": ["0.00%", "0.00%", "+0.00%"],
            "parse": ["60.00%", "60.00%", "+0.00%"],
            "render": ["30.00%", "20.00%", "-10.00%"],
        })
        self.assertTrue(lines[-2].startswith("total: 1 s, now 2 s;"), lines)
        self.assertEqual(lines[-1], "noise is not known: a file has no slices of time and no series to estimate it from")

        # As JSON it is the answer of the server.
        answer = json.loads(self.run_hearth("diff", self.base, self.now, "-o", "json", "--type", "samples").stdout)
        self.assertEqual((answer["unit"], answer["flamegraph"]["leftTicks"]), ("count", "100"))
        self.assertEqual(answer["flamegraph"]["rightTicks"], "200")

    def test_no_credential_is_read_for_files(self):
        env = {"HEARTH_TOKEN_FILE": "/nowhere/token", "HEARTH_URL": "http://127.0.0.1:1"}
        for arguments in (["flame", self.base], ["top", self.base], ["diff", self.base, self.now]):
            done = subprocess.run([HEARTH, *arguments], capture_output=True, text=True, env=server_environment(env))
            self.assertEqual(done.returncode, OK, done.stderr)
        done = subprocess.run([HEARTH, "top"], capture_output=True, text=True, env=server_environment(env))
        self.assertEqual(done.returncode, USAGE, done.stderr)

    def test_files_that_cannot_be_compared_are_named(self):
        heap = os.path.join(self.root, "heap.pb")
        with open(heap, "wb") as file:
            file.write(Profile([("alloc_space", "bytes")]).add(["main"], [1]).encode())
        for arguments, want, code in (
            ([self.base], "name the second file", USAGE),
            ([self.base, "{}"], 'there is no file "{}"', USAGE),
            (["before.pb.gz", "after.pb.gz"], "before.pb.gz: cannot open: No such file", USAGE),
            ([self.base, "./nothing"], "./nothing: cannot open", USAGE),
            ([self.base, heap], f'{heap}: there is no type "{CPU}"; types of the file: memory:alloc_space:bytes', USAGE),
            ([self.base, self.now, "--since", "1h"], "ranges are for queries", USAGE),
            ([self.base, self.now, "--base-from", "now-1h"], "ranges are for queries", USAGE),
            ([self.base, self.now, "--without", "parse"], "filters, --aggregation", USAGE),
            ([self.zero, self.zero], "all values are 0", NO_DATA),
        ):
            self.assertIn(want, self.run_hearth("diff", *arguments, code=code).stderr)
        self.assertIn("there is nothing in the base", self.run_hearth("diff", self.zero, self.now).stdout.splitlines()[0])
        self.assertIn("nothing to compare", self.run_hearth("diff", self.base, self.zero).stdout.splitlines()[0])

    def test_the_table_of_a_file_is_printed(self):
        out = self.run_hearth("top", self.base).stdout.splitlines()
        self.assertEqual([line.split()[-1] for line in out[1:]], ["parse", "render", "gone", "main", "s"])
        by_total = self.run_hearth("top", self.base, "--sort", "total", "-n", "2").stdout.splitlines()
        self.assertEqual([line.split()[-1] for line in by_total[1:3]], ["main", "parse"])
        self.assertEqual(by_total[3], "rows 1 to 2 of 4; --limit and --offset show others")
        by_name = json.loads(self.run_hearth("top", self.base, "--sort", "name", "--search", "n", "--offset", "1",
                                             "-o", "json").stdout)
        self.assertEqual([row["name"] for row in by_name["rows"]], ["main", "render"])
        self.assertEqual(by_name["rows"][1], {"name": "render", "self": "300000000", "total": "300000000"})
        self.run_hearth("top", self.base, "--search", "nothing", code=NO_DATA)
        self.run_hearth("top", self.zero, code=NO_DATA)
        self.assertIn("--by-kind is for queries", self.run_hearth("top", self.base, "--by-kind", "line", code=USAGE).stderr)
        self.assertIn("--search", self.run_hearth("top", self.base, "--search", "(", code=USAGE).stderr)

    def test_a_table_fits_a_narrow_terminal(self):
        for columns, has_totals in ((60, False), (120, True)):
            t = Terminal([HEARTH, "diff", self.base, self.now], server_environment({"TERM": "dumb", "LC_ALL": "C.UTF-8"}), columns, 20)
            self.addCleanup(t.close)
            code, out, _ = t.end("")
            self.assertEqual(code, OK)
            rows = [line for line in (out or t.screen.text()).splitlines() if line.strip().endswith(("fresh", "gone", "render"))]
            self.assertEqual(len(rows), 3, rows)
            self.assertEqual([row.count("%") for row in rows], [6 if has_totals else 3] * 3)

    # ---- on the screen ----

    def screen(self, *arguments, columns=100, **env):
        variables = {"HEARTH_URL": "http://127.0.0.1:1", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TZ": "UTC",
                     "COLORTERM": "", "NO_COLOR": "", **env}
        terminal = Terminal([HEARTH, "diff", "-i", *arguments], server_environment(variables), columns, 20)
        self.addCleanup(terminal.close)
        return terminal

    def test_a_diff_on_the_screen_has_colours_and_the_change_of_the_selected_box(self):
        t = self.screen(self.base, self.now)
        t.see("base 1 s, now 2 s", "parse 60.0% +0.00 pt", "render 20.0% -10.00 pt", "fresh", "gone",
              "blue less, grey within noise, red more")

        # Less, the same, more; what is gone is the bluest, what is new the reddest.
        for color, name in ((117, "render"), (250, "parse"), (202, "fresh"), (27, "gone")):
            boxes = [text for style, text in self.cells(t) if style.endswith("48;5;%d" % color)]
            self.assertTrue(any(name in text for text in boxes), (name, boxes))
        t.press("jj")
        t.see("\nparse", "base 60.00%, now 60.00%, +0.00 pt, noise is not known")
        t.press("l")
        t.see("\nrender", "now 20.00%, -10.00 pt, noise is not known")

        # The table is sorted by the size of changes; other views have the changes of functions.
        t.press("t")
        lines = t.see("20.00% +20.00 pt 20.00% +20.00 pt fresh").splitlines()
        rows = [line.split()[-1] for line in lines if " pt " in line and "%" in line]
        self.assertEqual(rows[0], "fresh")
        self.assertEqual(rows[-2:], ["parse", "main"])
        t.press("t")
        t.press("i")
        t.see("render 20.0% -10.00 pt")
        t.press("/render\r")
        t.see("matched")
        self.assertEqual(t.end()[0], OK)

    def cells(self, terminal):
        """[(style, text)] of what stands on the screen."""
        return [(style, terminal.screen.styled(style)) for style in terminal.screen.styles]

    def test_the_gate_counts_after_the_screen(self):
        t = self.screen(self.base, self.now, "--fail-on", "self(fresh) > 1%")
        t.see("fresh")
        code, out, err = t.end()
        self.assertEqual(code, FAILED)
        self.assertIn("crossed: self(fresh) > 1%", out + err)
        self.assertIn("needs a terminal", self.run_hearth("diff", "-i", self.base, self.now, code=USAGE).stderr)

    def test_a_function_without_a_name_is_unknown_in_every_output(self):
        path = self.write("nameless.pb", {"main;;parse": 3, "main;": 2})
        self.assertEqual(self.run_hearth("flame", path, "-o", "collapsed", "--type", "samples").stdout.splitlines(),
                         ["main;[unknown] 2", "main;[unknown];parse 3"])
        rows = json.loads(self.run_hearth("top", path, "-o", "json").stdout)["rows"]
        self.assertEqual({row["name"] for row in rows}, {"main", "parse", "[unknown]"})
        for output, quoted in (("json", '"[unknown]"'), ("speedscope", '"[unknown]"'), ("html", '"[unknown]"'), ("dot", '"[unknown]\\n'),
                               ("svg", "<title>[unknown] ")):
            self.assertIn(quoted, self.run_hearth("flame", path, "-o", output).stdout, output)

        # It can be hidden by that name, and kept when something else is.
        hidden = self.run_hearth("flame", path, "--hide", "[unknown]", "-o", "collapsed", "--type", "samples").stdout
        self.assertEqual(hidden.splitlines(), ["main 2", "main;parse 3"])
        self.run_hearth("flame", path, "--hide", "parse", "-o", "pprof=" + os.path.join(self.root, "out.pb"), "--type", "samples")
        kept = Decoded(pathlib.Path(self.root, "out.pb").read_bytes())
        self.assertEqual({tuple(name for (name, _, _), in stack): values[0] for stack, values, _ in kept.samples}, {("[unknown]", "main"): 5})

    def test_recordings_of_other_profilers_are_shown(self):
        """Of a perf script, the table has the sums of its collapsed stacks."""
        folded = os.path.join(self.root, "stacks.txt")
        stacks = {"a;b": 3, "a;c;b": 4, "c": 5}
        with open(folded, "w") as file:
            file.writelines("%s %d\n" % line for line in stacks.items())
        expected = collections.Counter()
        for stack, count in stacks.items():
            expected[stack.split(";")[-1]] += count
        answer = json.loads(self.run_hearth("top", folded, "-o", "json").stdout)
        self.assertEqual({row["name"]: int(row["self"]) for row in answer["rows"] if "self" in row}, expected)
        if not SHARED.is_dir():
            self.skipTest("the shared recordings are not here")
        v1, v2 = (str(SHARED / "pprof" / ("go-cpu-gdu-%s.pb.gz" % v)) for v in ("v1", "v2"))
        self.assertIn("total: ", self.run_hearth("diff", v1, v2).stdout)


if __name__ == "__main__":
    unittest.main()
