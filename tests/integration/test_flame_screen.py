"""`hearth flame` on a terminal: keys that people press, and what they see, at 60, 100 and 220 columns."""

import base64
import signal
import unittest
import urllib.parse

from pprof import Profile
from server import HEARTH, Server, now_ms, server_environment, temporary_directory
from terminal import Terminal
from test_cli import CPU, NO_DATA, OK, USAGE, hearth

UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
SELECTOR = '{service_name="shop"}'
SELECTED = "48;5;25"
MATCHED = "48;5;177"
HOSTILE = "evil\x1b]0;title\x07\x1b[2J\x9b31m\u202ename"


def shop():
    p = Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000, duration_ns=10_000_000_000)
    p.add(["main", "net/http.serve", "parse"], [300_000_000])
    p.add(["main", "net/http.serve", "render", "parse"], [200_000_000])
    p.add(["main", "net/http.serve", "render"], [100_000_000])
    p.add(["main", "fib", "fib", "fib"], [350_000_000])
    p.add(["main", "日本語の関数", HOSTILE], [50_000_000])
    return p


class Flame(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = temporary_directory()
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.url = f"http://127.0.0.1:{cls.server.port}"
        path = f"{cls.root}/shop.pb"
        with open(path, "wb") as file:
            file.write(shop().encode())
        done = hearth("upload", path, "--label", "service_name=shop", env={"HEARTH_URL": cls.url})
        assert done.code == OK, done.err

    def flame(self, *options, columns=100, rows=30, selector=SELECTOR, **env):
        variables = {"HEARTH_URL": self.url, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TZ": "UTC", "COLORTERM": "",
                     "NO_COLOR": "", **env}
        terminal = Terminal([HEARTH, "flame", selector, *options], server_environment(variables), columns, rows)
        self.addCleanup(terminal.close)
        return terminal

    # ---- what is seen first ----

    def test_each_width_shows_the_headline_the_boxes_and_their_values(self):
        for columns in (60, 100, 220):
            with self.subTest(columns=columns):
                t = self.flame(columns=columns)
                shown = t.see(SELECTOR, "total 1 s", "process_cpu:cpu", "UTC", "main 100.0%", "q quit")
                lines = [t.screen.line(row) for row in range(30)]
                self.assertIn("http.serve", shown)
                self.assertNotIn("net/http.serve", shown)
                # The edges of 60 % and 35 % of the width, in the row below main.
                row = next(line for line in lines if "http.serve" in line)
                self.assertIn(row.index("http.serve") - 1, {round(columns * x) for x in (0, 0.05, 0.35, 0.4)})
                self.assertIn("60.0%", row)
                self.assertEqual("cpu:nanoseconds" in shown, columns == 220)
                self.assertEqual(t.end(), (OK, "", ""))

    def test_a_copy_made_by_the_compiler_keeps_the_name_of_its_function(self):
        p = Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000, duration_ns=10_000_000_000)
        p.add(["main", "finish_task_switch.isra.0"], [200_000_000])
        p.add(["main", "other work"], [800_000_000])
        path = f"{self.root}/kernel.pb"
        with open(path, "wb") as file:
            file.write(p.encode())
        done = hearth("upload", path, "--label", "service_name=kernel", env={"HEARTH_URL": self.url})
        self.assertEqual(done.code, OK, done.err)
        t = self.flame(selector='{service_name="kernel"}')
        t.see("▏finish_task_swit")  # not: isra.0
        t.end()

    def test_names_cannot_send_control_characters(self):
        t = self.flame("--min-percent", "0", columns=220)
        t.see("▏日本語の", "▏evil?]0;t")  # Screen fails on a raw one
        t.press("/evil\r")
        t.see("\nevil?]0;title??[2J?31m?name ")
        self.assertEqual(t.screen.clipboard, [])
        t.end()
        t = self.flame("--min-percent", "0", LC_ALL="C")
        shown = t.see("http.serve")
        self.assertTrue(shown.isascii())
        t.end()

    def test_colours_are_those_of_the_terminal(self):
        t = self.flame(COLORTERM="truecolor")
        t.see("main")
        self.assertTrue(any("48;2;" in style for style in t.screen.styles))
        t.end()
        t = self.flame(TERM="xterm")
        t.see("main")
        self.assertFalse(any("48;" in style for style in t.screen.styles))
        self.assertTrue(any(style.startswith("30;4") for style in t.screen.styles))
        t.end()
        t = self.flame("-i", NO_COLOR="1")
        t.see("main")
        self.assertLessEqual(t.screen.styles, {"0", "7"})
        t.end()

    def test_the_screen_follows_the_size_of_the_terminal(self):
        t = self.flame(columns=220)
        t.see("process_cpu:cpu:nanoseconds")
        t.resize(60, 20)
        t.see("process_cpu:cpu 1", "main 100.0%", "q quit", missing=["cpu:nanoseconds"])
        t.resize(10, 4)
        t.see("the termi")
        t.resize(100, 30)
        t.see("main 100.0%")
        t.end()

    # ---- keys ----

    def test_arrows_and_letters_select_boxes(self):
        t = self.flame()
        t.see("total")
        for keys, name in ((DOWN, "main"), (DOWN, "net/http.serve"), ("k", "main"), ("j", "net/http.serve")):
            t.press(keys)
            t.see("\n" + name + " ")
            self.assertIn(name.rsplit("/")[-1], t.screen.styled(SELECTED))
        t.press("h" * 9 + DOWN)
        t.see("\nfib ", "350 ms 35.00%")
        t.press("l" * 9)
        t.press("\x1b[H")
        t.see("\ntotal ", "1 s 100.00%")
        t.end()

    def test_enter_zooms_and_backspace_goes_back(self):
        t = self.flame()
        t.see("total")
        t.press(DOWN + DOWN + "\r")
        shown = t.see("parse 30.0% 300 ms", missing=["fib"])
        self.assertIn("render 30.0% 300 ms", shown)
        t.press("u")
        t.see("fib")
        t.press("\r\x7f0")
        t.see("fib")
        t.end()

    def test_a_search_of_a_folded_graph_gives_the_least_share(self):
        """Of the largest three nodes, those below are folded into boxes "other", which may hide matches."""
        t = self.flame("--max-nodes", "3")
        t.see("other")
        t.press("/serve\r")
        t.see("matched at least 600 ms 60.00%")

    def test_a_search_counts_nested_matches_once(self):
        t = self.flame()
        t.see("total")
        t.press("/parse|rend[e]r")
        t.see("/parse|rend[e]r_")
        t.press("\r")
        t.see("matched 600 ms 60.00%")
        self.assertIn("parse", t.screen.styled(SELECTED) + t.screen.styled(MATCHED))
        seen = [t.press_until_new("n", 28) for _ in range(3)]
        self.assertEqual([line.split()[:2] for line in seen], [["render", "300"], ["parse", "200"], ["parse", "300"]])
        self.assertEqual(t.press_until_new("N", 28), seen[1])
        t.press("\x1b")
        t.see("q quit", missing=["matched"])
        t.press("/(\r")
        t.see("missing )")
        t.press("\x7fnothing\r")
        t.see("matched 0 ns 0.00%")
        t.press("n")
        t.see("no match has a box here")
        t.end()

    def test_a_sandwich_shows_callers_above_and_callees_below(self):
        t = self.flame()
        t.see("total")
        t.press("/^render$\r")
        t.see("matched 300 ms 30.00%")
        t.press("\x1bs")
        t.see("callers and callees")
        lines = t.screen.text().split("\n")
        at = {name: next(i for i, line in enumerate(lines[2:28]) if name in line) for name in ("http.serve", "render", "parse")}
        self.assertLess(at["http.serve"], at["render"])
        self.assertLess(at["render"], at["parse"])
        t.press(UP)
        t.see("\nnet/http.serve ", "300 ms 30.00%")
        t.press(DOWN + DOWN)
        t.see("\nparse ", "200 ms 20.00%")
        t.press("\x1b")
        t.see("fib")
        t.end()

    def test_stacks_are_built_from_their_leaves(self):
        t = self.flame()
        t.see("total")
        t.press("i")
        t.see("from the leaves", "parse 50.0% 500 ms", "fib 35.0% 350 ms")
        t.press("i")
        t.see("main 100.0%", missing=["from the leaves"])
        t.end()

    def test_the_table_sorts_searches_and_opens_a_sandwich(self):
        t = self.flame()
        t.see("total")
        t.press("t")
        lines = t.see("functions", "o sorts by total").split("\n")
        self.assertEqual(lines[3].split(), ["500", "ms", "50.00%", "500", "ms", "50.00%", "parse"])
        self.assertEqual(lines[4].split(), ["350", "ms", "35.00%", "350", "ms", "35.00%", "fib"])
        t.press("o")
        lines = t.see("o sorts by self").split("\n")
        self.assertEqual(lines[3].split()[-1], "main")
        t.press("/fib\r")
        t.see("function (1)", missing=["net/http.serve"])
        t.press("\r")
        t.see("callers and callees")
        t.end()

    def test_help_names_the_keys(self):
        t = self.flame(columns=60)
        t.see("total")
        t.press("?")
        t.see("zoom into the selected box", "q quit")
        t.press(" ")
        t.see("main")
        t.end()

    def test_each_width_has_all_views(self):
        for columns in (60, 100, 220):
            with self.subTest(columns=columns):
                t = self.flame(columns=columns)
                t.see("main 100.0%")

                # Move, zoom, and back.
                t.press("jj")
                t.see("\nnet/http.serve ", "600 ms 60.00%")
                t.press("\r")
                t.see("parse 30.0%", missing=["fib"])
                t.press("u")
                t.see("fib")

                # Search with the matched share; sandwich; from the leaves.
                t.press("/parse|render\r")
                t.see("matched 600 ms 60.00%")
                t.press("\x1b/^render$\r")
                t.see("matched 300 ms 30.00%")
                t.press("s")
                t.see("callers and callees", "http.serve", "parse")
                t.press("\x1b\x1b")
                t.see("fib", missing=["callers and callees"])
                t.press("i")
                t.see("from the leaves", "parse 50.0%")
                t.press("i")

                # Table, help, link: each is readable at this width.
                t.press("t")
                lines = t.see("500 ms 50.00%", "function (7)").splitlines()
                self.assertEqual([line.split()[-1] for line in lines[3:5]], ["parse", "fib"])
                t.press("t?")
                t.see("zoom into the selected box", "copy", "quit")
                t.press(" y")
                t.see("copied the address")
                code, printed, _ = t.end()
                self.assertEqual((code, len(t.screen.clipboard)), (OK, 1))
                self.assertTrue(printed.startswith(self.url + "/profile?"), printed)

    # ---- the page ----

    def test_the_address_of_the_page_is_copied_and_printed(self):
        t = self.flame("--from", "now-30m")
        t.see("total")
        t.press("iy")
        t.see("copied the address")
        code, printed, _ = t.end()
        self.assertEqual(code, OK)
        address = printed.strip()
        self.assertEqual(t.screen.clipboard, ["52;c;" + base64.b64encode(address.encode()).decode()])
        url = urllib.parse.urlsplit(address)
        self.assertEqual(f"{url.scheme}://{url.netloc}{url.path}", self.url + "/profile")
        parameters = dict(urllib.parse.parse_qsl(url.query))
        self.assertEqual((parameters["q"], parameters["type"], parameters["flip"]), (SELECTOR, CPU, "1"))
        self.assertAlmostEqual(int(parameters["to"]) - int(parameters["from"]), 30 * 60_000, delta=2)

    def diff(self, *arguments, columns=100):
        env = server_environment({"HEARTH_URL": self.url, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TZ": "UTC",
                                  "COLORTERM": "", "NO_COLOR": ""})
        terminal = Terminal([HEARTH, "diff", "-i", *arguments], env, columns, 30)
        self.addCleanup(terminal.close)
        return terminal

    def test_a_diff_has_colours_and_the_address_of_its_page(self):
        slower = shop()
        slower.add(["main", "net/http.serve", "compress"], [999_990_000])
        slower.add(["main", "tick"], [10_000])  # the period: there are many samples, so that noise is small
        path = f"{self.root}/slower.pb"
        with open(path, "wb") as file:
            file.write(slower.encode())
        done = hearth("upload", path, "--label", "service_name=slower", env={"HEARTH_URL": self.url})
        self.assertEqual(done.code, OK, done.err)
        now = '{service_name="slower"}'
        for columns in (60, 100, 220):
            with self.subTest(columns=columns):
                t = self.diff(SELECTOR, now, "--since", "30m", columns=columns)
                t.see("compress", "fib", "base 1 s, now 2 s")
                for style, name in (("48;5;202", "compress"), ("48;5;117", "fib")):
                    boxes = {each: t.screen.styled(each) for each in t.screen.styles if name in t.screen.styled(each)}
                    self.assertTrue(any(each.endswith(style) for each in boxes), boxes)
                t.press("/compress\ry")
                t.see("copied the address")
                code, printed, _ = t.end()
                self.assertEqual(code, OK)
                address = printed.strip()
                self.assertEqual(t.screen.clipboard, ["52;c;" + base64.b64encode(address.encode()).decode()])
                url = urllib.parse.urlsplit(address)
                self.assertEqual(f"{url.scheme}://{url.netloc}{url.path}", self.url + "/diff")
                parameters = dict(urllib.parse.parse_qsl(url.query))
                self.assertAlmostEqual(int(parameters.pop("to")) - int(parameters.pop("from")), 30 * 60_000, delta=2)
                self.assertEqual(parameters, {"q": now, "base": SELECTOR, "type": CPU, "against": "same", "search": "compress"})

        # The page has a word for some earlier ranges.
        for options, against in ((["--since", "20m"], "previous"), (["--since", "20m", "--base-from", "now-80m"], "hour"),
                                 (["--since", "1h", "--base-from", "now-169h"], "week"), (["--since", "20m", "--base-from", "now-7h"], None)):
            with self.subTest(options):
                t = self.diff(now, *options)
                t.see("compress")
                t.press("y")
                t.see("copied the address" if against else "the page compares with the same range")
                address = t.end()[1].strip()
                self.assertEqual(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query)).get("against"), against)

    def test_a_filter_has_no_address(self):
        t = self.flame("--without", "fib")
        t.see("total")
        t.press("y")
        t.see("the page cannot show these filters")
        self.assertEqual(t.end()[1], "")

    # ---- files ----

    def test_a_file_needs_no_server(self):
        env = {"HEARTH_URL": "http://127.0.0.1:1"}
        t = self.flame(selector=f"{self.root}/shop.pb", **env)
        t.see("shop.pb", "process_cpu:cpu 2", "total 1 s", "main 100.0%")
        t.press("y")
        t.see("a file has no page")
        self.assertEqual(t.end()[:2], (OK, ""))
        self.assertEqual(
            hearth("flame", f"{self.root}/shop.pb", env=env).out,
            hearth("flame", SELECTOR, env={"HEARTH_URL": self.url}).out,
        )

    def test_files_of_other_formats_and_types_are_shown(self):
        lines = f"{self.root}/stacks.txt"
        with open(lines, "w") as file:
            file.write("main;_ZN3web7handlerEi 3\nmain;_RNvC6_123foo3bar 1\n")
        out = hearth("flame", lines).out
        self.assertIn("75.00%", out)
        self.assertIn("web::handler\n", out)
        self.assertIn("123foo::bar\n", out)
        heap = f"{self.root}/heap.pb"
        with open(heap, "wb") as file:
            p = Profile([("alloc_space", "bytes"), ("inuse_space", "bytes")], time_ns=now_ms() * 1_000_000)
            p.add(["main", "grow"], [4096, 1024])
            file.write(p.encode())
        ran = hearth("flame", heap)
        self.assertIn("1 KiB 100.00%", ran.out)
        self.assertIn("memory:alloc_space:bytes, memory:inuse_space:bytes", ran.err)
        for name in ("alloc_space", "memory:alloc_space", "memory:alloc_space:bytes"):
            self.assertIn("4 KiB 100.00%", hearth("flame", heap, "--type", name).out)

    def test_a_file_that_cannot_be_shown_is_named(self):
        broken = f"{self.root}/broken.bin"
        with open(broken, "wb") as file:
            file.write(b"\x00\x01\x02" * 99)
        path = f"{self.root}/shop.pb"
        for arguments, want in (
            (["./nothing.pb"], "./nothing.pb: cannot open: No such file or directory"),
            ([broken], f"{broken}: "),
            ([path, "--type", "wall"], 'there is no type "wall"; types of the file: process_cpu:cpu:nanoseconds'),
            ([path, "--since", "1h"], "a file is read whole: ranges are for queries"),
            ([path, "--without", "fib"], "a file is read whole: filters, --aggregation and --go-stacks are for queries"),
        ):
            ran = hearth("flame", *arguments)
            self.assertEqual(ran.code, USAGE, ran.err)
            self.assertIn(want, ran.err)

    # ---- beginning and end ----

    def test_the_terminal_is_restored_after_keys_and_signals(self):
        for end in ("q", "\x03", signal.SIGTERM, signal.SIGHUP):
            with self.subTest(end=end):
                t = self.flame()
                t.see("main 100.0%")
                self.assertIn("?1049", t.screen.modes)
                if isinstance(end, str):
                    code = t.end(end)[0]
                else:
                    t.kill(end)
                    code = t.end("")[0]
                self.assertEqual(code, OK if isinstance(end, str) else -end)
                self.assertEqual(t.screen.modes, {"?7", "?25"})
                self.assertEqual(t.modes()[:4], t.modes_before[:4])

    def test_small_boxes_are_omitted_as_in_the_tree(self):
        t = self.flame("--min-percent", "40", columns=220)
        t.see("http.serve", missing=["fib"])
        t.end()
        t = self.flame("--min-percent", "40", "--no-interactive", columns=220)
        code, printed, _ = t.end("")
        self.assertRegex(printed, "http.serve +60.0% 600 ms")
        self.assertNotIn("fib", printed)
        tree = hearth("flame", SELECTOR, "--min-percent", "40", env={"HEARTH_URL": self.url}).out
        self.assertIn("http.serve", tree)
        self.assertNotIn("fib", tree)

    def test_interactive_screens_require_a_terminal(self):
        env = {"HEARTH_URL": self.url}
        self.assertIn("needs a terminal", hearth("flame", "-i", env=env).err)
        self.assertEqual(hearth("flame", "-i", env=env).code, USAGE)
        self.assertEqual(hearth("top", "-i", env=env).code, USAGE)
        self.assertEqual(hearth("flame", "-i", "--no-interactive", env=env).code, USAGE)
        self.assertIn("100.00%", hearth("flame", SELECTOR, env=env).out)
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            t = self.flame(**variables)
            self.assertEqual(t.end("")[0], OK)
            self.assertIn("100.0", t.screen.main)
            self.assertNotIn("?1049", t.screen.modes)
        t = self.flame(selector='{service_name="nobody"}')
        self.assertEqual(t.end("")[0], NO_DATA)


if __name__ == "__main__":
    unittest.main()
