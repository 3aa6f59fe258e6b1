"""What is stored of a frame, and what it is called: code without symbols, functions without a name."""

import gzip
import json
import os
import pty
import re
import subprocess
import unittest
import urllib.parse

import wire
from pprof import Decoded, Profile
from questions import CPU, DOT
from server import HEARTH, Server, now_ms, server_environment, temporary_directory
from test_cli import OK, hearth

QUERY = "hearth.v1.QueryService/"
SECOND = 1000
T = now_ms() // SECOND * SECOND - 60 * SECOND
START, END = T - 60 * SECOND, T + 60 * SECOND
BINARY, BUILD_ID = "/usr/bin/stripped", "b01d"


def stripped(start, stacks, flags=(7,)):
    """A profile of a stripped binary that is mapped at `start`: its mapping says has_functions (field 7), its locations have
    addresses alone. stacks: [(leaf-first addresses, value)]; a text among them is a frame with a name."""
    strings = ["", "cpu", "nanoseconds", BINARY, BUILD_ID]
    mapping = [(1, 1), (2, start), (3, start + 0x10000), (4, 0x2000), (5, 3), (6, 4)] + [(flag, 1) for flag in flags]
    out = [(1, [(1, 1), (2, 2)]), (11, [(1, 1), (2, 2)]), (9, T * 1_000_000), (3, mapping)]
    ids = {}
    for frames, value in stacks:
        for frame in frames:
            if frame in ids:
                continue
            ids[frame] = number = len(ids) + 1
            if isinstance(frame, str):
                strings.append(frame)
                out.append((5, [(1, number), (2, len(strings) - 1), (3, len(strings) - 1)]))
                out.append((4, [(1, number), (2, 1), (3, start + number), (4, [(1, number), (2, 7)])]))
            else:
                out.append((4, [(1, number), (2, 1), (3, frame)]))
        out.append((2, [(1, ("packed", [ids[frame] for frame in frames])), (2, ("packed", [value]))]))
    return gzip.compress(wire.encode(out + [(6, text) for text in strings]), 1)


def addresses(data):
    """{address: {(start, limit, offset, file, build id, flags)}} of locations without lines."""
    f = wire.decode(data)
    strings = wire.texts(f[6])
    mappings = {}
    for raw in f.get(3, []):
        v = {number: values[-1] for number, values in wire.decode(raw).items()}
        text = [strings[v.get(number, 0)] for number in (5, 6)]
        mappings[v[1]] = (v.get(2, 0), v.get(3, 0), v.get(4, 0), *text, *(number in v for number in range(7, 11)))
    out = {}
    for raw in f.get(4, []):
        v = wire.decode(raw)
        if 4 not in v:
            out.setdefault(v[3][-1], set()).add(mappings[v[2][-1]])
    return out


class Frames(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def push(self, service, *profiles):
        for profile in profiles:
            self.server.push(profile, {"__name__": "process_cpu", "service_name": service})
        return '{service_name="%s"}' % service

    def merged(self, selector):
        return self.server.merge_pprof(CPU, selector, START, END)

    # ---- code without symbols ----

    def test_an_export_of_a_stripped_binary_can_still_be_symbolised(self):
        selector = self.push("stripped", stripped(0x400000, [((0x401000, 0x402000), 5), (("known", 0x402000), 2)]))
        mapped = {(0x400000, 0x410000, 0x2000, BINARY, BUILD_ID, True, False, False, False)}
        want = {0x401000: mapped, 0x402000: mapped}
        self.assertEqual(addresses(self.merged(selector)), want)

        # And as a file, by the client.
        file = temporary_directory() + "/out.pb.gz"
        url = "http://127.0.0.1:%d" % self.server.port
        done = hearth("query", "profile", selector, "--type", CPU, "-o", "pprof=" + file, env={"HEARTH_URL": url})
        self.assertEqual(done.code, OK, done.err)
        with open(file, "rb") as exported:
            self.assertEqual(addresses(gzip.decompress(exported.read())), want)

    def test_an_address_of_two_processes_stays_two_locations(self):
        stack = [((0x401000,), 5)]
        selector = self.push("two", stripped(0x400000, stack), stripped(0x3ff000, stack), stripped(0x400000, stack))
        data = self.merged(selector)
        self.assertEqual({m[0] for m in addresses(data)[0x401000]}, {0x400000, 0x3FF000})
        self.assertEqual(sorted(values for _, values, _ in Decoded(data).samples), [[5], [10]])

    def test_functions_of_two_processes_are_one_wherever_they_are_mapped(self):
        stack = [(("known", "main"), 5)]
        for flags in ((), (7,), (7, 8, 9)):
            profiles = [stripped(start, stack, flags) for start in (0x400000, 0x7F0000000000)]
            selector = self.push("aslr%d" % len(flags), *profiles)
            self.assertEqual([values for _, values, _ in Decoded(self.merged(selector)).samples], [[10]])

    # ---- functions without a name ----

    def nameless(self):
        """main calls a function without a name, which calls leaf; and another without a name is a root."""
        p = Profile([("cpu", "nanoseconds")], time_ns=T * 1_000_000)
        p.add(["main", "", "leaf"], [4]).add(["main", ""], [2]).add([""], [1])
        return self.push("nameless", p.encode())

    def selection(self, **more):
        return {"profileType": CPU, "labelSelector": self.selector, "start": START, "end": END, **more}

    def ask(self, method, **more):
        return self.server.connect(QUERY + method, {"selection": self.selection(), **more})

    def get(self, path, **arguments):
        status, _, body = self.server.http("GET", "/pyroscope/%s?%s" % (path, urllib.parse.urlencode(arguments)))
        self.assertEqual(status, 200, body)
        return body.decode()

    def render(self, **more):
        return self.get("render", query=CPU + self.selector, **{"from": str(START), "until": str(END)}, **more)

    def run_hearth(self, *arguments):
        url = "http://127.0.0.1:%d" % self.server.port
        done = hearth(*arguments, "--type", CPU, env={"HEARTH_URL": url})
        self.assertEqual(done.code, OK, done.err)
        return done.out

    @staticmethod
    def names_of(levels, names, per_box=4):
        """Names of boxes, level by level, from left to right."""
        return [names[int(v)] for level in levels for v in level[per_box - 1 :: per_box]]

    def test_a_function_without_a_name_has_one_name_everywhere(self):
        type(self).selector = self.nameless()
        for name, check in sorted(vars(type(self)).items()):
            if name.startswith("check_"):
                with self.subTest(name):
                    check(self)

    def check_pyroscopes_flame_graphs_have_the_empty_name(self):
        want = ["total", "", "main", "", "leaf"]
        flame = self.server.flamegraph(CPU, self.selector, START, END)
        self.assertEqual(self.names_of(flame.levels, flame.names), want)
        self.assertEqual(flame.root.plain()[3][0], ("", 1, 1, []))
        graph = json.loads(self.render())["flamebearer"]
        self.assertEqual(self.names_of(graph["levels"], graph["names"]), want)
        tree = self.server.tree(CPU, self.selector, START, END)
        self.assertEqual(sorted(child.name for child in tree.children), ["", "main"])

    def check_pyroscopes_diffs_have_the_empty_name(self):
        want = ["total", "", "main", "", "leaf"]
        side = (CPU, self.selector, START, END)
        levels = self.server.diff(side, side)[0]
        self.assertEqual([box[6] for level in levels for box in level], want)

        sides = {"%s%s" % (side, end): str(ms) for side in ("left", "right") for end, ms in (("From", START), ("Until", END))}
        query = CPU + self.selector
        graph = json.loads(self.get("render-diff", leftQuery=query, rightQuery=query, **sides))["flamebearer"]
        self.assertEqual(self.names_of(graph["levels"], graph["names"], 7), want)

    def check_an_export_has_the_empty_name(self):
        stacks = Decoded(self.merged(self.selector)).by_stack(0)
        self.assertEqual(sorted(line[0] for stack in stacks for line in stack), ["", "", "", "leaf", "main", "main"])

    def check_pictures_and_texts_have_unknown(self):
        dot = self.server.stacktraces(CPU, self.selector, START, END, format=DOT)[3][-1].decode()
        self.assertEqual(sorted(re.findall(r'^  n\d+ \[label="([^\\]*)', dot, re.M)), ["[unknown]", "leaf", "main"])
        shown = [line.split()[-1] for line in self.render(format="text").splitlines()]
        self.assertEqual(shown, ["total", "main", "[unknown]", "leaf", "[unknown]"])  # the heaviest child first

    def check_hearths_flame_graphs_have_unknown(self):
        want = ["total", "[unknown]", "main", "[unknown]", "leaf"]
        for graph, per_box in (
            (self.ask("Merge")["flamegraph"], 4),
            (self.server.connect(QUERY + "Diff", {"left": self.selection(), "right": self.selection()})["flamegraph"], 7),
        ):
            levels = [level["values"] for level in graph["levels"]]
            self.assertEqual(self.names_of(levels, graph["names"], per_box), want)

    def check_hearths_tables_have_unknown_and_find_it(self):
        rows = {row["name"]: (row.get("self", "0"), row["total"]) for row in self.ask("Top")["rows"]}
        self.assertEqual(rows, {"[unknown]": ("3", "7"), "main": ("0", "6"), "leaf": ("4", "4")})

        sandwich = self.ask("Sandwich", function="[unknown]")
        self.assertEqual((sandwich["self"], sandwich["total"]), ("3", "7"))
        self.assertEqual([node["name"] for node in sandwich["callers"]], ["[unknown]", "main"])
        self.assertEqual([node["name"] for node in sandwich["callees"]], ["[unknown]", "leaf"])
        callers = self.ask("Sandwich", function="leaf")["callers"]
        self.assertEqual([node["name"] for node in callers], ["leaf", "[unknown]", "main"])

        self.assertEqual(self.ask("Lines", function="[unknown]")["total"], "7")
        series = self.ask("FunctionTimeline", functions=["[unknown]"], step=60)["series"][0]
        self.assertEqual((series["function"], sum(int(p["total"]) for p in series["points"])), ("[unknown]", 7))

    def check_filters_find_unknown(self):
        for stacks, total in (
            ({"functions": ["[unknown]"]}, 7), ({"without": ["[unknown]"]}, 0), ({"regex": "^.unknown"}, 7),
            ({"callSite": ["main", "[unknown]"]}, 6), ({"callSite": [""]}, 1),
        ):
            graph = self.server.connect(QUERY + "Merge", {"selection": self.selection(stacks=stacks)})["flamegraph"]
            self.assertEqual(int(graph.get("total", 0)), total, stacks)
        answer = self.server.flamegraph(CPU, self.selector, START, END, call_site=("main", ""))
        self.assertEqual(answer.total, 6)

    def check_the_client_prints_unknown(self):
        for command in (
            "flame %s", "top %s", "query top %s", "query profile %s -o collapsed", "sandwich leaf %s",
            "diff %s --base-from now-1d",
        ):
            out = self.run_hearth(*[word.replace("%s", self.selector) for word in command.split()])
            self.assertIn("[unknown]", out, command)
            self.assertNotIn("(unknown)", out, command)

    def check_a_terminal_shows_unknown(self):
        master, slave = pty.openpty()
        env = server_environment({
            "HEARTH_URL": "http://127.0.0.1:%d" % self.server.port, "TERM": "xterm-256color", "COLUMNS": "100"})
        arguments = [HEARTH, "flame", "--no-interactive", self.selector, "--type", CPU]
        done = subprocess.run(arguments, stdin=slave, stdout=slave, stderr=subprocess.PIPE, timeout=60, env=env)
        os.close(slave)
        shown = os.read(master, 1 << 16).decode()
        os.close(master)
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn("[unknown]", shown)
        self.assertEqual(shown.count("total"), 2, "the root, and the sum below")


if __name__ == "__main__":
    unittest.main()
