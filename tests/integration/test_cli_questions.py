"""The commands of `hearth` for the questions of hearth.v1: top, sandwich, lines, timeline, label-stats, diff, heatmap, rules,
trace, spans."""

import json
import os
import pty
import re
import shlex
import subprocess
import time
import unittest

import contract
import otlp
from pprof import Decoded, Profile
from server import HEARTH, Server, now_ms, server_environment, temporary_directory
from test_cli import NO_DATA, OK, USAGE, hearth
from test_cli_recorded import on_terminal

BEFORE, AFTER, SHOP, HEAT, SPANS = ('{service_name="%s"}' % s for s in ("before", "after", "shop", "heat", "spans"))

QUIET = "00000000000000ee"  # a span without samples of its own


class CliQuestions(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--otlp-traces")
        cls.url = "http://127.0.0.1:%d" % cls.server.port
        cls.t = now_ms() // 1000 * 1000 - 120_000
        for labels, after_ms, profile in contract.PUSHED:
            cls.server.push(profile((cls.t + after_ms) * 1_000_000).encode(), {"__name__": "process_cpu", **labels})
        trace, a, b = (bytes.fromhex(i) for i in (contract.TRACE_A, contract.SPAN_A, contract.SPAN_B))
        at = cls.t * 1_000_000
        spans = [
            otlp.span(trace, bytes.fromhex(QUIET), "batch", at, at + 30 * otlp.MS, otlp.INTERNAL),
            otlp.span(trace, a, "GET /pay", at, at + 20 * otlp.MS, otlp.SERVER, bytes.fromhex(QUIET)),
            otlp.span(trace, b, "query", at + otlp.MS, at + 11 * otlp.MS, otlp.CLIENT, a, otlp.ERROR),
        ]
        body = otlp.request(({"service.name": "spans"}, spans))
        status, _, answer = cls.server.http("POST", "/v1/traces", body, {"Content-Type": otlp.PROTO})
        assert status == 200, answer

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def run_hearth(self, *arguments):
        has_type = arguments[:1] != ("rules",) or "set" in arguments
        return hearth(*arguments, *(["--type", contract.CPU] if has_type else []), env={"HEARTH_URL": self.url})

    def ask(self, *arguments):
        done = self.run_hearth(*arguments)
        self.assertEqual(done.code, OK, done.err)
        return done.out

    def json(self, *arguments):
        return json.loads(self.ask(*arguments, "-o", "json"))

    def refused(self, part, *arguments, code=USAGE):
        done = self.run_hearth(*arguments)
        self.assertEqual((done.code, done.out), (code, ""), done.err)
        self.assertIn(part, done.err)

    # ---- tables of functions ----

    def test_top_is_a_table_with_a_row_for_each_value_of_its_key(self):
        self.assertEqual(
            self.ask("top", SHOP).splitlines(),
            [
                " self       %   total        %  function",
                "50 ns  45.45%   50 ns   45.45%  fib",
                "30 ns  27.27%   30 ns   27.27%  query",
                "20 ns  18.18%   20 ns   18.18%  gc",
                "10 ns   9.09%   40 ns   36.36%  handle",
                " 0 ns   0.00%  110 ns  100.00%  main",
                "total: 110 ns",
            ],
        )
        self.assertIn("  fib.c:1     fib\n", self.ask("top", SHOP, "--by-kind", "line"))
        self.assertIn("  gc.c\n", self.ask("top", SHOP, "--by-kind", "file"))

    def test_top_sorts_searches_and_pages(self):
        rows = self.json("top", SHOP, "--sort", "name", "--search", "^[g-q]", "--limit", "2", "--offset", "1")
        self.assertEqual([r["name"] for r in rows["rows"]], ["handle", "main"])
        self.assertEqual((rows["rowCount"], rows["total"]), ("4", "110"))
        self.assertIn("rows 2 to 3 of 5; --limit and --offset show others", self.ask("top", SHOP, "--limit", "2", "--offset", "1"))

    def test_filters_narrow_every_query(self):
        self.assertEqual(self.json("top", SHOP, "--function", "fib")["total"], "50")
        self.assertEqual(self.json("top", SHOP, "--function", "fib", "--function", "gc")["total"], "70")
        self.assertEqual(self.json("top", SHOP, "--without", "fib")["total"], "60")
        self.assertEqual(self.json("top", SHOP, "--call-site", "main", "--call-site", "handle")["total"], "40")
        spans = '{service_name="spans"}'
        for option, value, total in (("--span-id", contract.SPAN_A, "7"), ("--trace-id", contract.TRACE_A, "9")):
            self.assertEqual(self.json("top", spans, option, value)["total"], total)
            self.assertEqual(self.json("flame", spans, option, value)["total"], total)
        self.assertEqual(self.json("flame", SHOP, "--function", "fib")["total"], "50")
        self.assertEqual(self.json("flame", SHOP, "--call-site", "main", "--call-site", "fib")["total"], "50")
        found = self.json("timeline", SHOP, "--without", "fib", "--step", "1h")
        self.assertEqual(found["series"][0]["points"][0]["value"], 60)
        self.assertIn("query", self.ask("query", "top", SHOP, "--call-site", "main", "--call-site", "handle"))

    def test_rows_of_every_table_narrow_every_query(self):
        for total, *options in (
            ("50", "--file", "fib.c"), ("60", "--not-file", "fib.c"), ("70", "--file", "/^(fib|gc)/"),
            ("70", "--file", "/^f/", "--file", "gc.c"), ("50", "--line", "fib:1"), ("50", "--line", "fib:1", "--thread", ""),
            ("40", "--line", "handle:1", "--not-file", "/^fib/"), ("110", "--not-class", "x", "--not-package", "x"),
            ("110", "--not-module", "x", "--not-directory", "/^x/"),
        ):
            for command in ("top", "flame", "lines"):
                with self.subTest(command=command, options=options):
                    arguments = ("main", SHOP) if command == "lines" else (SHOP,)
                    if command == "lines" and options[1] in ("/^(fib|gc)/", "/^f/", "x"):
                        continue  # some of these stacks do not contain main
                    self.assertEqual(self.json(command, *arguments, *options)["total"], total)
        self.assertIn("stacks.rows[0].regex: ", self.run_hearth("top", SHOP, "--class", "/(/").err)
        self.refused("label-stats does not take --class", "label-stats", "zone", "--class", "x")

    def test_filters_that_leave_nothing_are_not_taken_for_an_empty_range(self):
        for option in ("--file", "--function", "--package"):
            self.refused("range that the filters leave; their names must be exact", "top", SHOP, option, "fi", code=NO_DATA)
        self.refused("there is no service \"nobody\"; there are ", "top", '{service_name="nobody"}', code=NO_DATA)

    def test_a_profile_id_selects_its_profile(self):
        heat = self.json("heatmap", HEAT, "--step", "1h")["series"][0]["slots"][0]["exemplars"][-1]
        self.assertEqual(self.json("top", HEAT, "--profile-id", heat["profileId"])["total"], heat["value"])

    def test_sandwich_has_callers_and_callees(self):
        self.assertEqual(
            self.ask("sandwich", "handle", SHOP).splitlines(),
            [
                "      self       %      total       %  function",
                "     10 ns   9.09%      40 ns  36.36%  handle",
                "", "callers; below each, its own callers", "     40 ns 100.00%  main",
                "", "callees; below each, its own callees", "     30 ns  75.00%  query",
            ],
        )
        sides = self.ask("sandwich", "main", SHOP).split("callees; below each, its own callees\n")[1]
        self.assertEqual([line[20:] for line in sides.splitlines()], ["fib", "  fib", "    fib", "handle", "  query", "gc"])
        self.refused("nobody", "sandwich", "nobody", SHOP, code=NO_DATA)
        self.refused("sandwich: FUNCTION is missing", "sandwich")

    def test_lines_are_those_of_one_function(self):
        self.assertEqual(
            self.ask("lines", "handle", SHOP).splitlines()[1], "10 ns  25.00%  40 ns  100.00%  handle.c:1"
        )
        self.refused("lines: FUNCTION is missing", "lines")

    def test_lines_name_their_binary_where_it_differs(self):
        for service, binaries in (("one-binary", ["/bin/shop"]), ("two-binaries", ["/bin/shop", "/lib/cart.so"])):
            profile = Profile([("cpu", "nanoseconds")], time_ns=self.t * 1_000_000)
            for at, binary in enumerate(2 * binaries):
                profile.samples.append(([(("add", "cart.go", 7 + at), binary)], [10], {}))
            self.server.push(profile.encode(), {"__name__": "process_cpu", "service_name": service})
        one, two = ('{service_name="%s"}' % service for service in ("one-binary", "two-binaries"))
        self.assertNotIn("mapping", self.ask("lines", "add", one))
        self.assertIn("/bin/shop", self.ask("lines", "add", one, "-o", "wide"))
        self.assertIn(",mapping,build_id,line\n", self.ask("lines", "add", one, "-o", "csv").replace("\r", ""))
        self.assertEqual([line.split()[-2:] for line in self.ask("lines", "add", two).splitlines()[1:5]],
                         [["/bin/shop", "cart.go:7"], ["/bin/shop", "cart.go:9"], ["/lib/cart.so", "cart.go:8"], ["/lib/cart.so", "cart.go:10"]])

    # ---- over time ----

    def test_a_timeline_of_functions_has_a_line_each(self):
        found = self.json("timeline", SHOP, "--function", "fib", "--function", "handle", "--step", "1h")
        self.assertEqual({s["function"]: (s["points"][0].get("self", "0"), s["points"][0]["total"]) for s in found["series"]},
                         {"fib": ("50", "50"), "handle": ("10", "40")})
        lines = self.ask("timeline", SHOP, "--function", "fib", "--function", "handle").splitlines()
        self.assertEqual([re.split(r" {2,}", line)[-2:] for line in lines], [["50 ns", "fib"], ["40 ns", "handle"]])
        self.assertRegex(self.ask("timeline", SHOP, "--function", "handle"), r"(?m)^\S+ \S+ +10 ns +40 ns  █{40}$")

    def test_label_stats_describe_each_value(self):
        lines = self.ask("label-stats", "zone", HEAT).splitlines()
        self.assertEqual(lines[1].split(), "420 ns 51.16% 3 1 140.0 ns 43.2 ns 100 ns 200 ns east".split())
        self.assertEqual(lines[2].split()[-1], "west")
        self.refused("label-stats: LABEL is missing", "label-stats")
        self.refused("label-stats: LABEL is missing", "label-stats", '{service_name="api"}')
        self.refused("label-stats does not take --function", "label-stats", "zone", "--function", "x")

    # ---- two sides ----

    def test_diff_names_new_missing_and_changed_functions(self):
        self.assertEqual(
            self.ask("diff", BEFORE, AFTER).splitlines()[2:],
            [
                "   0.00%   37.50%  +37.50%     0.00%   37.50%  +37.50%  new  d",
                "  33.33%    0.00%  -33.33%    33.33%    0.00%  -33.33%  gone b",
                "  66.67%   50.00%  -16.67%    66.67%   50.00%  -16.67%       a",
                "   0.00%   12.50%  +12.50%   100.00%  100.00%   +0.00%       main",
                "   0.00%    0.00%   +0.00%     0.00%   37.50%  +37.50%  new  c",
                "total: 15 ns, now 8 ns; shares are of each side's own total",
                "noise is not known: a side has data in fewer than 4 slices of time and 4 series, and values of this "
                "type do not tell the number of samples",
            ],
        )
        answer = self.json("diff", BEFORE, AFTER)["flamegraph"]
        self.assertEqual((answer["leftTicks"], answer["rightTicks"]), ("15", "8"))
        filtered = self.json("diff", BEFORE, AFTER, "--function", "a")["flamegraph"]
        self.assertEqual((filtered["leftTicks"], filtered["rightTicks"]), ("10", "4"))

    def test_diff_requests_as_many_nodes_as_the_server_allows(self):
        limits = lambda value: self.ask_plainly("admin", "limits", "max-flamegraph-nodes=" + value)
        limits("3")
        self.addCleanup(limits, "default")
        lines = self.ask("diff", BEFORE, AFTER).splitlines()
        self.assertIn("other", [line.split()[-1] for line in lines if line.strip()])
        self.assertIn("total: 15 ns, now 8 ns; shares are of each side's own total", lines)
        self.refused("max-flamegraph-nodes", "diff", BEFORE, AFTER, "--max-nodes", "4")

    def ask_plainly(self, *arguments):
        done = hearth(*arguments, env={"HEARTH_URL": self.url})
        self.assertEqual(done.code, OK, done.err)
        return done.out

    def test_a_heap_is_shown_by_the_space_in_use_unless_another_type_is_given(self):
        profile = Profile([("alloc_objects", "count"), ("inuse_space", "bytes")], time_ns=self.t * 1_000_000)
        profile.add(["f"], [3, 4096])
        self.server.push(profile.encode(), {"__name__": "memory", "service_name": "heap"})
        around = ["--from", str(self.t - 10_000), "--to", str(self.t + 10_000)]
        done = hearth("top", "heap", *around, env={"HEARTH_URL": self.url})
        self.assertRegex(done.err, r"(?m)^type: memory:inuse_space:bytes:\S+ \(of 2; choose with --type\)$")
        self.assertIn("4.00 KiB", done.out)

    def test_diff_of_one_selector_is_against_the_range_before(self):
        def side(ms):
            return "%d" % ms

        heat = ["diff", HEAT, "--from", side(self.t + 1001), "--to", side(self.t + 3000)]
        answer = self.json(*heat, "--base-from", side(self.t), "--base-to", side(self.t + 1000))["flamegraph"]
        self.assertEqual((answer["leftTicks"], answer["rightTicks"]), ("420", "401"))
        done = self.run_hearth(*heat)
        self.assertEqual(done.code, OK, done.err)
        self.assertRegex(done.err, "base: .* to ")
        self.refused("--base-from is after --base-to", *heat, "--base-from", side(self.t + 9), "--base-to", side(self.t))

    def test_diff_on_a_terminal_is_a_picture_too(self):
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [HEARTH, "diff", BEFORE, AFTER, "--type", contract.CPU, "--url", self.url], stdout=slave, stderr=subprocess.DEVNULL,
            env=server_environment({"TERM": "xterm-256color"}),
        )
        os.close(slave)
        out = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            out += part
        self.assertEqual(process.wait(), OK)
        os.close(master)
        text = out.decode()
        self.assertIn("\x1b[38;5;16;48;5;27m▏b", text, "what is gone is blue")
        self.assertIn("\x1b[38;5;16;48;5;202m▏c", text, "what is new is red")
        self.assertIn("new  d", text)

    # ---- heatmap, rules ----

    def test_a_heatmap_has_twenty_rows_and_its_points(self):
        lines = self.ask("heatmap", HEAT, "--from", str(self.t - 10_000), "--to", str(self.t + 10_000), "--step", "1s").splitlines()
        self.assertEqual(len(lines), 22)
        self.assertTrue(lines[0].startswith("    290 ns │"))
        self.assertEqual(lines[-1], "5 points, up to 1 in a cell")
        # A second of twenty is four of eighty columns.
        bars = re.findall("█+", "\n".join(lines))
        self.assertEqual((len(bars), {len(bar) for bar in bars} - {3, 4}), (5, set()))
        spans = self.ask("heatmap", '{service_name="spans"}', "--by-kind", "span")
        self.assertIn("2 points", spans)
        self.refused('"line" is not a value for --by-kind, which takes profile or span', "heatmap", HEAT, "--by-kind", "line")

    def test_a_heatmap_of_one_value_prints_it_once(self):
        profile = Profile([("cpu", "nanoseconds")], time_ns=self.t * 1_000_000).add(["f"], [7])
        self.server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "even"})
        text = self.ask("heatmap", '{service_name="even"}', "--type", contract.CPU, "--from", str(self.t - 10_000),
                        "--to", str(self.t + 10_000), "--step", "1s")
        self.assertEqual([line.split("│")[0].strip() for line in text.splitlines() if "│" in line], [""] * 19 + ["7 ns"])

    def test_a_heatmap_and_a_sandwich_fit_narrow_and_wide_terminals(self):
        of = server_environment({"HEARTH_URL": self.url, "LC_ALL": "C.UTF-8", "TERM": "xterm", "PAGER": "cat"})
        frames = ["root", *("f%d" % i for i in range(9)), "long" * 30]
        profile = Profile([("cpu", "nanoseconds")], time_ns=self.t * 1_000_000).add(frames, [5])
        self.server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "deep"})
        arguments = ["--type", contract.CPU, "--from", str(self.t - 10_000), "--to", str(self.t + 10_000), "--color", "never"]
        for width in (60, 100, 220):
            with self.subTest(width):
                code, out, err = on_terminal([HEARTH, "heatmap", HEAT, *arguments, "--step", "1s"], of, width)
                self.assertEqual((code, max(map(len, out.splitlines()))), (OK, width), err)
                self.assertIn("\n5 points, up to 1 in a cell\n", out)
                deep = [HEARTH, "sandwich", "root", '{service_name="deep"}', *arguments]
                code, out, err = on_terminal(deep, of, width)
                widest = max(out.splitlines(), key=len)
                self.assertEqual((code, len(widest)), (OK, min(width, 20 + 2 * 9 + len(frames[-1]))), err)

    def test_cardinality_and_plans_fit_narrow_and_wide_terminals(self):
        of = server_environment({"HEARTH_URL": self.url, "LC_ALL": "C.UTF-8", "TERM": "xterm", "PAGER": "cat"})
        label = "label_" + "x" * 40
        profile = Profile([("cpu", "nanoseconds")], time_ns=self.t * 1_000_000).add(["main"], [5])
        self.server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "wide", label: "v" * 80})
        asked = ['{service_name="wide"}', "--from", str(self.t - 10_000), "--to", str(self.t + 10_000), "--color", "never"]
        for width in (60, 100, 220):
            with self.subTest(width):
                code, out, err = on_terminal([HEARTH, "query", "cardinality", *asked], of, width)
                rows = [line for line in out.splitlines() if "label_" in line]
                self.assertEqual((code, len(rows)), (OK, 1), err)
                self.assertLessEqual(max(map(len, out.splitlines())), width)
                self.assertRegex(rows[0], "label_x+… +v+")
                code, out, err = on_terminal([HEARTH, "top", *asked, "--type", contract.CPU, "--explain"], of, width)
                table = out.split("\n\n", 1)[1]
                self.assertEqual(code, OK, err)
                self.assertLessEqual(max(map(len, table.splitlines())), width, table)
                self.assertRegex(table, r"(?s)source +reads.*profiles +\S.* to \d.*all ")

    # ---- traces and spans ----

    def first(self):
        """When the profiles of T were taken, as the client prints it."""
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.t // 1000))

    def test_a_trace_is_printed_with_the_cost_of_its_spans(self):
        profile = self.json("trace", "cc")["results"][0]["profiles"][0]["profileId"]
        lines = self.ask("trace", "cc").splitlines()
        self.assertEqual(
            lines,
            [
                "trace cc: exact, its samples carry the id",
                "",
                "     total  profiles  type",
                "      9 ns         1  " + contract.CPU,
                "",
                "profile of                taken in  service  id                                    labels",
                "%s      0 ns  spans    %s" % (self.first(), profile),
                "",
                "spans, by " + contract.CPU,
                "      self      total       took  span              name",
                "         -       9 ns      30 ms  %s  batch  spans" % QUIET,
                "      7 ns       9 ns      20 ms  %s  └ GET /pay  spans, entry" % contract.SPAN_A,
                "      2 ns       2 ns      10 ms  %s    └ query  spans, exit, error" % contract.SPAN_B,
                "",
                "hearth trace cc --flame --type " + contract.CPU,
                "hearth flame '{service_name=\"spans\"}' --type %s --from %s --to %s --trace-id %s"
                % (contract.CPU, self.first(), self.first(), contract.TRACE_A),
            ],
        )
        for line in lines[-2:]:
            self.assertIn("9 ns 100.00%", self.ask(*shlex.split(line)[1:]).splitlines()[0])

    def test_an_id_may_be_of_a_span_and_in_any_spelling(self):
        for span in (contract.SPAN_A, contract.SPAN_A.upper(), "170"):
            found = self.json("trace", span)["results"][0]
            self.assertEqual((found["certainty"], found["types"][0]["total"], found["spanIds"]), ("CERTAINTY_EXACT", "7", [contract.SPAN_A]))
        lines = self.ask("trace", contract.SPAN_A, "--span").splitlines()
        self.assertEqual(lines[0], "span %s: exact, its samples carry the id" % contract.SPAN_A)
        self.assertEqual(lines[-2], "hearth trace %s --span --flame --type %s" % (contract.SPAN_A, contract.CPU))
        self.assertTrue(lines[-1].endswith(" --span-id " + contract.SPAN_A))
        both = self.ask("trace", "cc", contract.SPAN_B)
        self.assertIn("\n\nspan %s: exact" % contract.SPAN_B, both)

    def test_the_stack_traces_of_spans_are_answered_as_those_of_any_query(self):
        self.assertEqual(
            self.ask("trace", contract.SPAN_A, "--flame").splitlines(),
            ["      7 ns 100.00% ████████████████ " + name for name in ("total", " main", " x")],
        )
        self.assertIn("      9 ns 100.00%", self.ask("trace", contract.SPAN_A, "--flame", "--children"))
        self.assertEqual(
            self.ask("trace", contract.SPAN_A, contract.SPAN_B, "--top", "--each").splitlines(),
            [
                contract.SPAN_A + ": 7 ns",
                "self        %  total        %  function",
                "7 ns  100.00%   7 ns  100.00%  x",
                "0 ns    0.00%   7 ns  100.00%  main",
                "total: 7 ns",
                "",
                contract.SPAN_B + ": 2 ns",
                "self        %  total        %  function",
                "2 ns  100.00%   2 ns  100.00%  x",
                "0 ns    0.00%   2 ns  100.00%  main",
                "total: 2 ns",
            ],
        )
        each = self.ask("trace", "cc", contract.SPAN_B, "--top", "--each").splitlines()
        self.assertEqual([line for line in each if re.match("[0-9a-f]+: ", line)], ["cc: 9 ns", contract.SPAN_B + ": 2 ns"], "in the order asked for")
        self.assertEqual(self.ask("trace", "cc", "-o", "collapsed"), "main;x 9\n")
        for output, want in (
            ("flame", "9 ns 100.00%"),
            ("html", '"title":"cc"'),
            ("svg", "<title>main · total 9 ns (100.00%)"),
            ("dot", "n2 -> n1 "),
            ("speedscope", '"weights":[9]'),
        ):
            self.assertIn(want, self.ask("trace", "cc", "-o", output))
        self.assertEqual(self.json("trace", "cc", "--flame")["profiles"][0]["flamegraph"]["total"], "9")
        path = os.path.join(temporary_directory(), "trace.pb.gz")
        self.assertEqual(self.ask("trace", "cc", "-o", "pprof=" + path), "")
        with open(path, "rb") as file:
            self.assertEqual(Decoded(file.read()).totals(), [9])
        self.refused("no data", "trace", "cc", "--flame", "--function", "y", code=NO_DATA)

    def test_a_span_without_samples_has_those_of_its_children(self):
        found = self.json("trace", QUIET)["results"][0]
        self.assertEqual((found["certainty"], found["types"][0]["total"]), ("CERTAINTY_WINDOW", "14"))
        self.assertIn("\nspans\n      took  span              name\n     30 ms  %s  batch  spans\n" % QUIET, self.ask("trace", QUIET))
        self.assertIn("     14 ns 100.00%", self.ask("trace", QUIET, "--flame"))
        self.assertIn("      9 ns 100.00%", self.ask("trace", QUIET, "--flame", "--children"))
        self.refused("carries any of these ids", "trace", QUIET, "--root", "--flame", code=NO_DATA)
        self.refused("\nsearched: samples of 0 spans", "trace", QUIET, "--root", "--flame", code=NO_DATA)

    def test_a_look_up_is_explained(self):
        """By id the index names one profile; a span without samples, and a window, read what began up to then."""
        window = ["--service", "heat", "--start", str(self.t), "--duration", "1s"]
        for arguments, n in (
            (["cc"], 1),
            ([contract.SPAN_A], 1),
            ([contract.SPAN_A, "--root"], 1),
            ([QUIET], 1),
            (["cc", "--flame"], 1),
            ([contract.SPAN_A, "--top", "--children"], 1),
            ([QUIET, "--flame"], 1),
            (window, 5),
        ):
            plan = self.ask("trace", *arguments, "--explain")
            self.assertRegex(plan, r"(?m)^all +%d " % n, arguments)
            self.assertNotIn("main", plan)
        self.assertEqual(self.json("trace", "cc", "--explain")["rows"], "1")
        self.refused("nothing would be read: no profile is known by these ids, nor by time", "trace", "77", "--explain", code=NO_DATA)

    def test_without_ids_profiles_are_found_by_service_and_time(self):
        def at(ms, *more):
            start = "%d" % (self.t + ms)
            return ["trace", "--service", "heat", "--start", start, *more]

        def total(*arguments):
            return self.json(*arguments)["results"][0]["types"][0]["total"]

        exact_pad = at(0, "--duration", "500ms", "--pad", "0")
        self.assertEqual(total(*exact_pad), "220", "ends are included")
        self.assertEqual(total(*at(500, "--end", "%d" % (self.t + 600), "--pad", "400ms")), "320")
        self.assertEqual(total(*at(0, "--duration", "1s")), "821")
        self.assertEqual(total(*at(0, "--duration", "1s", "--tag", "zone=west", "--map", "zone")), "401")
        self.assertEqual(total(*at(0, "--duration", "1s", "--tag", "z=west", "--query", '{zone="${__span.tags.z}"}')), "401")
        done = self.run_hearth(*exact_pad)
        lines = done.out.splitlines()
        self.assertEqual(lines[0], "service and time: window, whole profiles that were being taken meanwhile")
        self.assertEqual(lines[3], "    220 ns         2  " + contract.CPU)
        self.assertTrue(lines[6].endswith("  zone=east"), lines[6])
        self.assertIn("searched: by window: profiles of", done.err)
        self.assertIn("    220 ns 100.00%", self.ask(*shlex.split(lines[-1])[1:]).splitlines()[0])
        self.assertEqual(self.ask(*exact_pad, "-o", "collapsed"), "main 220\n")
        self.assertIn("\"self\":[[0,220]]", self.ask(*exact_pad, "-o", "html"))
        done = self.run_hearth(*exact_pad, "--flame")
        self.assertIn("    220 ns 100.00%", done.out)
        self.assertIn("note: no samples carry an id: these are whole profiles taken while the span ran", done.err)

    def test_a_refusal_names_the_searched_samples(self):
        self.refused("searched: ", "trace", "77", code=NO_DATA)
        self.refused("tried as a trace and as a span: ", "trace", "77", code=NO_DATA)
        self.refused("searched: ", "trace", "77", "--trace", code=NO_DATA)
        # Either is asked; what is said is of that which the id looks like.
        for id, of in (("af" * 16, "trace"), ("af" * 8, "span"), ("a.1.2", "trace"), ("a.1.2/0", "span")):
            self.refused('no profiles of %s "%s": ' % (of, id), "trace", id, code=NO_DATA)
        self.refused("\nsearched: samples of trace ", "trace", "77", code=NO_DATA)
        self.refused("\nhint: with --service NAME --start T --end T", "trace", "77", code=NO_DATA)
        self.refused('no profiles of trace "%s": no sample of these profile types carries the id' % ("d" * 32), "trace", "d" * 32, code=NO_DATA)
        # A known trace without profiles of the type that is asked for.
        memory = hearth("trace", contract.TRACE_A, "--type", "memory:a:bytes:b:bytes", env={"HEARTH_URL": self.url})
        self.assertIn("of these profile types carries the id; by window: no series that the selector takes has profiles of these types", memory.err)
        self.refused("no profiles of that service and time: ", "trace", "--service", "nobody", "--start", "now-1m", "--duration", "1s", code=NO_DATA)
        lines = self.ask("trace", "77", "170").splitlines()
        self.assertEqual(lines[0], "span 77: nothing")
        self.assertIn("span 170: exact, its samples carry the id", lines)
        done = self.run_hearth("trace", "77", "170", "--flame")
        self.assertIn("note: left out: no samples carry 77", done.err)
        self.assertIn("      7 ns 100.00%", done.out)

    def test_mistakes_of_trace_are_usage_errors(self):
        for part, *arguments in (
            ("trace needs the ID of a trace or span, or --service, --start and --end",),
            ("trace needs the ID", "--service", "x"),
            ("time of the span required: --start T and --end T", "--service", "x", "--start", "now-1h"),
            ("--start is after --end", "--service", "x", "--start", "now", "--end", "now-1h"),
            ("an ID is one of --trace, --span and --root", "1", "--trace", "--span"),
            ("--flame or --top", "1", "--flame", "--top"),
            ("trace does not take --span-id", "--span-id", "1"),
            ("--children and --each are for --flame", "1", "--each"),
            ("--children is for spans", "cc", "--trace", "--flame", "--children"),
            ("--function, --without, --call-site, --class and their like are for --flame", "1", "--function", "x"),
            ("--class and their like are for --flame", "1", "--not-thread", "x"),
            ("trace looks everywhere", "1", "--since", "1h"),
            ('--tag "x" is not NAME=VALUE', "1", "--tag", "x"),
            ("trace does not take --dot: it is for network topology", "1", "--dot"),
            ("which one output cannot hold", "1", "2", "--each", "-o", "collapsed"),
            ("which one output cannot hold", "1", "2", "--each", "-o", "html"),
        ):
            with self.subTest(arguments):
                self.refused(part, "trace", *arguments)
        self.refused("flame does not take --pad: it is for trace", "flame", "--pad", "1s")

    def test_spans_top_has_a_row_for_each_value_of_its_key(self):
        self.assertEqual(
            self.ask("spans", "top", SPANS).splitlines(),
            [
                "value       %  profiles   took  span              trace                             service  name",
                " 7 ns  50.00%%         1  20 ms  %s  %s  spans    GET /pay" % (contract.SPAN_A, contract.TRACE_A),
                " 2 ns  14.29%%         1  10 ms  %s  %s  spans    query" % (contract.SPAN_B, contract.TRACE_A),
                "total: 14 ns, of which 5 ns (35.71%) carries no span",
            ],
        )
        self.assertEqual(
            self.ask("spans", "top", SPANS, "--by", "trace").splitlines(),
            [
                "value       %  profiles  spans  trace                             service",
                " 9 ns  64.29%%         1      2  %s  spans" % contract.TRACE_A,
                "total: 14 ns, of which 5 ns (35.71%) carries no trace",
            ],
        )
        self.refused("hearth: 5 ns, of which nothing carries a span", "spans", "top", SPANS, "--function", "y", code=NO_DATA)
        self.refused("hearth: 14 ns, of which nothing carries an endpoint", "spans", "top", SPANS, "--by", "endpoint", code=NO_DATA)
        self.refused("hearth: no data in this range", "spans", "top", SPANS, "--function", "nobody", code=NO_DATA)
        self.refused('"pod" is not a value for --by, which takes span, trace, root, endpoint or name', "spans", "top", SPANS, "--by", "pod")
        self.refused("which takes table, wide, json, jsonl, csv", "spans", "top", SPANS, "-o", "collapsed")

    def test_spans_list_has_pages(self):
        lines = self.ask("spans", "list", SPANS, "--limit", "1", "--offset", "1").splitlines()
        self.assertIn("  %s  " % contract.SPAN_B, lines[1])
        self.assertEqual(lines[2], "rows 2 to 2 of 2; --limit and --offset show others")
        self.assertEqual([r["value"] for r in self.json("spans", "list", SPANS)["rows"]], ["7", "2"])
        self.refused("there are 2 rows; --offset is larger", "spans", "list", SPANS, "--offset", "2", code=NO_DATA)

    def test_spans_count_draws_bars_or_a_line_for_each_group(self):
        at = ["--from", str(self.t - 60_000), "--to", str(self.t + 60_000), "--step", "1m"]
        stamp = time.strftime("%m-%d %H:%M:%S", time.gmtime(self.t // 1000))
        self.assertEqual(
            self.ask("spans", "count", SPANS, *at).splitlines(),
            ["          time  spans  value", "%s      2   9 ns  %s" % (stamp, "█" * 40), "service_name=spans"],
        )
        self.assertEqual(self.json("spans", "count", SPANS, *at)["series"][0]["spanCount"], "2")
        self.refused("no samples of this selection carry a span", "spans", "count", SHOP, *at, code=NO_DATA)

    def test_rules_are_set_listed_replaced_and_deleted(self):
        made = self.json("rules", "set", "shop_fib_ns", SHOP, "--by", "pod", "--function", "fib", "--label", "team=x")["rule"]
        self.assertEqual((made["metricName"], made["groupBy"], made["profileType"]), ("shop_fib_ns", ["pod"], contract.CPU))
        self.assertEqual(made["externalLabels"], [{"name": "team", "value": "x"}])
        self.assertIn(SHOP, made["matchers"])
        self.assertIn("%s  shop_fib_ns" % made["id"], self.ask("rules"))
        again = self.json("rules", "set", "shop_ns", SHOP, "--id", made["id"])["rule"]
        self.assertEqual((again["id"], again["metricName"]), (made["id"], "shop_ns"))
        self.assertEqual(self.json("rules", "get", made["id"])["rule"], again)
        self.assertEqual(self.ask("rules", "delete", made["id"]), "")
        self.assertEqual(self.run_hearth("rules", "get", made["id"]).code, NO_DATA)
        self.refused("there is no such rules command: what", "rules", "what")

    def test_the_aggregation_of_a_gauge_is_shown_and_can_be_chosen(self):
        for value in (100, 300):
            scrape = Profile([("inuse_space", "bytes")], ("space", "bytes"), 524_288, (self.t + value) * 1_000_000)
            scrape.add(["keep"], [value])
            self.server.push(scrape.encode(), {"__name__": "memory", "service_name": "gauge"})
        kind = ("--type", "memory:inuse_space:bytes:space:bytes")
        for command in (("flame",), ("top",), ("query", "profile", "-o", "collapsed"), ("sandwich", "keep"), ("lines", "keep")):
            done = hearth(*command, '{service_name="gauge"}', *kind, env={"HEARTH_URL": self.url})
            self.assertIn("gauge: averaged over scrapes, summed over series", done.err, command)
            self.assertRegex(done.out, "200", command)
            done = hearth(*command, '{service_name="gauge"}', *kind, "--aggregation", "sum", env={"HEARTH_URL": self.url})
            self.assertNotIn("gauge:", done.err, command)
            self.assertRegex(done.out, "400", command)
        self.assertNotIn("gauge:", self.run_hearth("flame", SHOP).err)

    def test_the_figure_of_a_gauges_line_is_the_mean_of_its_points(self):
        for pod, values in (("a", (100, 300)), ("b", (50,))):
            for minute, value in enumerate(values):
                at = (self.t - minute * 60_000) * 1_000_000
                scrape = Profile([("inuse_space", "bytes")], ("space", "bytes"), 524_288, at).add(["keep"], [value])
                self.server.push(scrape.encode(), {"__name__": "memory", "service_name": "lines", "pod": pod})
        lines = ["timeline", '{service_name="lines"}', "--type", "memory:inuse_space:bytes:space:bytes", "--by", "pod", "--step", "30s"]
        for more in ((), ("--function", "keep")):
            for aggregation, of_a in (((), "200 B"), (("--aggregation", "mean"), "200 B"), (("--aggregation", "sum"), "400 B")):
                done = hearth(*lines, *more, *aggregation, env={"HEARTH_URL": self.url})
                self.assertEqual(done.code, OK, done.err)
                found = sorted(re.search(r"\d+ B", line)[0] for line in done.out.splitlines())
                self.assertEqual(found, sorted([of_a, "50 B"]), done.out)

    def test_wrong_values_are_usage_errors(self):
        self.refused('"x" is not a value for --by-kind, which takes function, line, file', "top", "--by-kind", "x")
        self.refused('"x" is not a value for --sort, which takes self, total or name', "top", "--sort", "x")
        self.refused('"x" is not a value for --aggregation, which takes sum or mean', "top", "--aggregation", "x")
        self.refused("not a UUID", "top", SHOP, "--profile-id", "x")
        self.assertEqual(self.run_hearth("query", "profile", SHOP, "--function", "x").code, NO_DATA)


if __name__ == "__main__":
    unittest.main()
