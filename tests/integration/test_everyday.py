"""hearth ready, probe, open, adhoc, query go-pgo and query exemplars, against a real server."""

import json
import os
import re
import subprocess
import unittest
import urllib.parse

from pprof import Profile, go_command, inflate
from server import HEARTH, Cluster, Server, eventually, now_ms, server_environment, temporary_directory
from test_cli import NO_DATA, OK, SERVER, USAGE, hearth

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


class Everyday(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.server = Server(database_url=cls.cluster.url())
        cls.url = "http://127.0.0.1:%d" % cls.server.port
        cls.directory = temporary_directory()
        for value in (5, 9, 7):
            done = cls.run_hearth("upload", cls.write("%d.pb.gz" % value, cls.profile(value)), "-l", "service_name=shop")
            assert done.code == OK, done.err

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cluster.stop()

    @classmethod
    def profile(cls, value):
        p = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000)
        p.add(["a", "b", "c", "d", "e", "f", "main.leaf"], [1, value], {"span_id": "%016x" % value})
        p.add(["main.leaf"], [1, 1])
        return p.encode()

    @classmethod
    def write(cls, name, data):
        path = os.path.join(cls.directory, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    @classmethod
    def run_hearth(cls, *arguments, **variables):
        return hearth(*arguments, env={"HEARTH_URL": cls.url, **variables})

    def ran(self, *arguments, code=OK, **variables):
        done = self.run_hearth(*arguments, **variables)
        self.assertEqual(done.code, code, done.err + done.out)
        return done

    def answer(self, *arguments):
        return json.loads(self.ran(*arguments, "-o", "json").out)

    def link(self, *arguments):
        """(page, parameters) of the printed link, which begins with the address of the server."""
        line = self.ran("open", *arguments).out
        self.assertTrue(line.startswith(self.url + "/") and line.endswith("\n"), line)
        page, _, query = line[len(self.url) + 1:-1].partition("?")
        pairs = urllib.parse.parse_qsl(query, strict_parsing=True) if query else []
        self.assertEqual(pairs, sorted(pairs))
        return page, dict(pairs)

    def test_a_server_without_database_is_not_ready_and_names_the_reason(self):
        cluster = Cluster()
        server = Server(database_url=cluster.url())
        url = "http://127.0.0.1:%d" % server.port
        self.assertEqual(self.ran("ready", HEARTH_URL=url).out, "ready\n")
        cluster.stop()
        done = eventually(lambda: (found := self.run_hearth("ready", HEARTH_URL=url)).code == SERVER and found)
        self.assertRegex(done.out, r"^not ready: .*database")
        answer = json.loads(self.ran("ready", "-o", "json", code=SERVER, HEARTH_URL=url).out)
        self.assertEqual((answer["ready"], answer["degraded"], len(answer["reasons"])), (False, False, 1))
        cluster.start()
        self.assertRegex(self.ran("ready", "--wait", "60s", HEARTH_URL=url).out, "^ready")
        server.stop()
        self.assertIn("cannot reach", self.ran("ready", "--wait", "1s", code=SERVER, HEARTH_URL=url).err)
        self.ran("ready", "--wait", "soon", code=USAGE)
        cluster.stop()

    def test_probe_queries_the_profile_that_it_pushed(self):
        self.assertRegex(self.ran("probe").out, r"^push +[\d.]+ ms  acknowledged\nquery +[\d.]+ ms  the same profile\n$")
        self.assertEqual(set(self.answer("probe")), {"pushMs", "queryMs"})
        rows = self.answer("profiles", "list", "hearth-probe")["profiles"]
        self.assertEqual(len(rows), 2)
        self.assertEqual({row["profileTypes"][0] for row in rows}, {"hearth_probe:samples:count::"})

    def test_probe_reports_a_server_that_does_not_answer(self):
        self.assertIn("push: cannot reach", self.ran("probe", "--url", "http://127.0.0.1:1", code=SERVER).err)

    def test_open_prints_the_link_of_the_same_query(self):
        self.assertEqual(self.link(), ("", {}))
        self.assertEqual(self.link("--page", "admin"), ("admin", {}))
        self.assertEqual(self.link("shop", "--since", "90m", "--type", "cpu"),
                         ("profile", {"q": '{service_name="shop"}', "from": "now-90m", "type": CPU}))
        self.assertEqual(self.link('{a="ü &+%"}')[1], {"q": '{a="ü &+%"}'})
        self.assertEqual(self.link("--function", "x\\y", "--function", "z", "--without", "w", "--class", "c d", "--thread", "t"),
                         ("profile", {"rows": "CLASS c d\nTHREAD t", "with": "x\\\\y\nz", "without": "w"}))
        self.assertEqual(self.link("--from", "2026-11-28T10:00Z", "--to", "2026-11-28T11:00Z")[1],
                         {"from": "1795860000000", "to": "1795863600000"})
        self.assertEqual(self.link("--since", "1h30s", "--page", "diff")[1], {"from": "now-3630s"})
        self.ran("open", "--page", "nowhere", code=USAGE)

    def test_open_starts_the_browser(self):
        bin = os.path.join(self.directory, "bin")
        os.makedirs(bin)
        script = self.write("bin/xdg-open", b'#!/bin/sh\necho "$1" > "%s/opened"\n' % self.directory.encode())
        os.chmod(script, 0o755)
        done = self.ran("open", "shop", "--browser", PATH=bin)
        with open(os.path.join(self.directory, "opened")) as file:
            self.assertEqual(file.read(), done.out)
        self.assertIn("xdg-open is not installed", self.ran("open", "--browser", PATH="/nonexistent", code=1).err)

    def test_adhoc_files_are_viewed_and_belong_to_no_service(self):
        self.assertIn("hearth adhoc FILE adds one", self.ran("adhoc", code=NO_DATA).err)
        path = self.write("look.txt", b"main;work 3\nmain;rest 1\n")
        answer = self.answer("adhoc", path)
        self.assertEqual(answer["link"], "%s/adhoc?ids=%s" % (self.url, answer["id"]))
        self.assertEqual(answer["profileTypes"], ["samples"])
        self.assertIn(answer["id"], self.ran("adhoc").out)
        done = self.ran("adhoc", self.write("bad", b"\0\0"), path, self.directory + "/none", code=USAGE)
        self.assertEqual(len(done.out.splitlines()), 1)
        self.assertIn("bad: ", done.err)
        self.assertIn("none: cannot open", done.err)

    def test_go_pgo_keeps_the_leaf_side_of_stacks(self):
        here = os.getcwd()
        os.chdir(self.directory)
        self.addCleanup(os.chdir, here)
        self.assertIn("wrote default.pgo", self.ran("query", "go-pgo", "shop").err)
        with open("default.pgo", "rb") as file:
            merged = inflate(file.read())
        if go_command():
            raw = subprocess.run([go_command(), "tool", "pprof", "-traces", "default.pgo"], capture_output=True, text=True, timeout=600)
            self.assertEqual(raw.returncode, 0, raw.stderr)
            self.assertRegex(raw.stdout, r"21ns +main\.leaf\n +f\n +e\n +d\n +c\n")
            self.assertNotIn(" b\n", raw.stdout)
        done = subprocess.run(["sh", "-c", '"$0" query go-pgo shop --keep-locations 1 -o pprof=- | gunzip', HEARTH],
                              capture_output=True, timeout=60, env=server_environment({"HEARTH_URL": self.url}))
        self.assertIn(b"main.leaf", done.stdout)
        self.assertLess(len(done.stdout), len(merged))
        heap = Profile([("inuse_space", "bytes")], time_ns=now_ms() * 1_000_000).add(["main"], [1]).encode()
        self.ran("upload", self.write("heap", heap), "-l", "service_name=heap")
        self.assertIn("is no CPU profile", self.ran("query", "go-pgo", "heap", code=USAGE).err)

    def test_cardinality_counts_values_and_series_of_labels(self):
        for pod in range(3):
            for service in ("card-a", "card-b"):
                path = self.write("card", self.profile(pod + 20))
                self.ran("upload", path, "-l", "service_name=" + service, "-l", "pod=%d" % pod, "-l", 'quoted=a"b')
        self.ran("upload", self.write("card", self.profile(1)), "-l", "service_name=card-a", "-l", "pod=0", "-l", "zone=x")
        answer = self.answer("query", "cardinality", '{service_name=~"card-.*"}')
        self.assertEqual(answer["series"], 14)  # two types each
        labels = {label.pop("name"): label for label in answer["labels"]}
        self.assertEqual(labels["pod"], {"values": 3, "series": 14, "largestValue": "0", "largestSeries": 6})
        self.assertEqual(labels["zone"], {"values": 1, "series": 2, "largestValue": "x", "largestSeries": 2})
        self.assertEqual([label["values"] for label in answer["labels"]], sorted((label["values"] for label in answer["labels"]), reverse=True))
        self.assertEqual([(s["name"], s["series"]) for s in answer["services"]], [("card-a", 8), ("card-b", 6)])
        self.assertGreater(answer["services"][0]["bytes"], answer["services"][1]["bytes"])
        table = self.ran("query", "cardinality", '{quoted="a\\"b", service_name=~"card-.*"}', "-n", "1").out
        self.assertRegex(table, r"(?s)^ +values +series +label.*\n +3 +12  pod .* 0 \(4\)\n\n +bytes +series +service\n.* 6  card-a\n\n12 series\n$")
        self.ran("query", "cardinality", "nosuch", code=NO_DATA)

    def test_both_sides_of_a_diff_and_functions_are_explained(self):
        times = ["--from", str(now_ms() // 1000 - 3600), "--to", str(now_ms() // 1000 + 60)]
        plan = self.ran("top", "shop", *times, "--explain").out
        self.assertRegex(plan, r"^1 series of 1 service: " + CPU)
        body = plan.partition("source")[2]
        for arguments in (["sandwich", "main.leaf", "shop"], ["lines", "main.leaf", "shop"]):
            self.assertEqual(self.ran(*arguments, *times, "--explain").out.partition("source")[2], body)
        rows = int(re.search(r"(?m)^all +(\d+)", body).group(1))
        legs = self.ran("diff", "shop", "shop", *times, "--base-from", times[1], "--base-to", times[3], "--explain").out
        self.assertRegex(legs, r"(?s)^1 series of 1 service: .*base: stack traces\n.*now: stack traces\n.*"
                               r"base: slices and series, to know the noise\n.*now: slices and series, .*\nall +%d " % (4 * rows))
        plan = self.answer("diff", "shop", *times, "--explain=json")
        self.assertEqual({leg["step"] for leg in plan["legs"]}, {"PLAN_STEP_STACKS"})  # nothing is read twice without a base
        path = self.write("a.txt", b"a 1\n")
        self.assertIn("files are read as a whole", self.ran("diff", path, path, "--explain", code=USAGE).err)

    def test_exemplars_are_the_largest_profiles_and_spans(self):
        rows = self.answer("query", "exemplars", "shop", "-n", "2")["profiles"]
        self.assertEqual([int(row["total"]) for row in rows], [10, 8])
        rows = self.answer("query", "exemplars", "shop", "--by-kind", "span", "-n", "2")["rows"]
        self.assertEqual([row["spanId"] for row in rows], ["%016x" % 9, "%016x" % 7])
        for kind, column in (("profile", "labels"), ("span", "span")):
            lines = self.ran("query", "exemplars", "shop", "--by-kind", kind, "-n", "2", "-o", "csv", "--columns", column).out.splitlines()
            self.assertEqual((lines[0], len(lines)), (column, 3))


if __name__ == "__main__":
    unittest.main()
