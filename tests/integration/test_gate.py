"""`hearth diff --fail-on`: equal halves pass, what was made worse fails, and CI systems can read why."""

import json
import os
import random
import re
import subprocess
import unittest
import xml.etree.ElementTree

from noise_data import GOLDEN, MINUTE, PARTS, SLICES, START, halves, read_runs, selector, store
from pprof import Profile
from questions import CPU
from server import HEARTH, Server, note, now_ms, server_environment, temporary_directory
from test_cli import FAILED, NO_DATA, OK, SERVER, USAGE

SPLITS, SIDE_BY_SIDE = 100, 2
RANGE = ["--type", CPU, "--from", str(START), "--to", str(START + SLICES * MINUTE - 1)]
PLANT = "<module>;main;count_words"
# Calls of one function, each too small to be judged, as are the functions that it calls.
SPREAD = ["<module>;caller_%d;decode;step_%d;decode;leaf_%d" % (i, i, i) for i in range(400)]
ANY_CHANGE = [word for what in ("self", "total") for sign in "<>" for word in ("--fail-on", "%s(.) %s 0%%" % (what, sign))]


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = temporary_directory()
        cls.server = Server("--builder=false")
        cls.addClassCleanup(cls.server.stop)
        cls.url = "http://127.0.0.1:%d" % cls.server.port
        runs = read_runs(GOLDEN)
        store(cls.server, "recorded", runs)
        store(cls.server, "worse", runs, PLANT)
        store(cls.server, "spread", runs, SPREAD, plant_percent=10, even_percent=5)
        cls.worse = [selector("worse", map(str, range(first, PARTS, 2))) for first in (0, 1)]

    def start(self, *arguments, url=None, env=None):
        env = server_environment({"HEARTH_URL": url or self.url, "CI_PROJECT_DIR": "", "GITHUB_WORKSPACE": "", **(env or {})})
        return subprocess.Popen([HEARTH, "diff", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=env)

    def gate(self, *arguments, code, **more):
        """Standard output and standard error."""
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, out + err)
        return out, err

    def path(self, name):
        return os.path.join(self.root, name)

    def test_random_halves_of_a_recording_pass(self):
        rng = random.Random(11)
        codes = []
        for _ in range(SPLITS // SIDE_BY_SIDE):
            running = [self.start(*halves("recorded", rng), *RANGE, *ANY_CHANGE) for _ in range(SIDE_BY_SIDE)]
            for process in running:
                _, err = process.communicate(timeout=60)
                codes.append(process.returncode)
                self.assertEqual(err.count("crossed: "), 4, err)
        alarms = codes.count(FAILED)
        self.assertEqual(codes.count(OK) + alarms, SPLITS)
        self.assertLessEqual(alarms, SPLITS * 5 // 100)
        note("%d of %d gates on random halves alarm" % (alarms, SPLITS))

    def test_a_planted_regression_is_found_and_named(self):
        conditions = ["--fail-on", "self(^count_words$) > +2%", "--fail-on", "total(count_words)>=+1pt", "--fail-on", "self(sqrt) > 2%"]
        junit, gitlab = self.path("junit.xml"), self.path("gitlab.json")
        out, err = self.gate(*self.worse, *RANGE, *conditions, "--junit", junit, "--annotate", "gitlab=" + gitlab,
                             code=FAILED)
        self.assertIn("* beyond noise", out)
        crossing = r"count_words: self (\d+\.\d\d)% -> (\d+\.\d\d)%, \+(\d+\.\d\d)%, q = \S+"
        before, after, change = map(float, re.search(r"^crossed: self\(\^count_words\$\) > \+2%\n  " + crossing, err, re.M).groups())
        self.assertAlmostEqual(change, 100 * (after - before) / before, delta=1)
        self.assertGreater(change, 2)
        self.assertRegex(err, r"\ncrossed: total\(count_words\)>=\+1pt\n  count_words: total .*, \+\d+\.\d\d pt, q = ")
        self.assertIn("\nnot crossed: self(sqrt) > 2%", err)

        # JUnit, read by a parser of XML.
        suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
        self.assertEqual({name: suite.get(name) for name in ("tests", "failures", "errors")},
                         {"tests": "3", "failures": "2", "errors": "0"})
        cases = suite.findall("testcase")
        self.assertEqual([case.get("name") for case in cases], conditions[1::2])
        self.assertRegex(cases[0].find("failure").get("message"), crossing)
        self.assertIsNone(cases[2].find("failure"))

        # The page of the comparison has the function and what it compares.
        report = self.path("report.html")
        out, err = self.gate(*self.worse, *RANGE, *conditions, "--report", "html=" + report, code=FAILED)
        self.assertIn("* beyond noise", out)
        self.assertIn("wrote " + report, err)
        with open(report, encoding="utf-8") as page:
            text = page.read()
        self.assertIn("count_words", text)
        self.assertIn("Content-Security-Policy", text)
        self.gate(*self.worse, *RANGE, "--report", "pdf=" + report, code=USAGE)
        self.gate(*self.worse, *RANGE, "--report", "html=/nowhere/report.html", code=FAILED)

        # GitLab.
        with open(gitlab) as file:
            issues = json.load(file)
        self.assertEqual({issue["check_name"] for issue in issues}, {"self(^count_words$) > +2%", "total(count_words)>=+1pt"})
        self.assertEqual(len({issue["fingerprint"] for issue in issues}), len(issues))
        self.assertEqual(issues[0]["location"], {"path": "count_words.c", "lines": {"begin": 1}})
        self.assertRegex(issues[0]["description"], crossing)
        again = self.path("again.json")
        self.gate(*self.worse, *RANGE, *conditions, "--annotate", "gitlab=" + again, code=FAILED)
        with open(again) as file:
            self.assertEqual([issue["fingerprint"] for issue in json.load(file)], [issue["fingerprint"] for issue in issues])

        # GitHub: a command for each crossing, in which % is escaped; the answer stands alone.
        out, err = self.gate(*self.worse, *RANGE, *conditions[:2], "--annotate", "github", "-o", "json", code=FAILED)
        self.assertIn("flamegraph", json.loads(out))
        self.assertEqual(len(re.findall(r"^::error file=count_words.c,line=1,title=hearth diff::self\(\^count_words\$\) > \+2%25: count_words: self ", err, re.M)), 1)

    def check_code_quality(self, issues):
        """The fields that GitLab documents for reports of own tools, with their types and values."""
        self.assertIsInstance(issues, list)
        for issue in issues:
            self.assertEqual(set(issue), {"description", "check_name", "fingerprint", "severity", "location"})
            for key in ("description", "check_name", "fingerprint"):
                self.assertIsInstance(issue[key], str)
                self.assertNotEqual(issue[key], "")
            self.assertIn(issue["severity"], ("info", "minor", "major", "critical", "blocker"))
            self.assertEqual((set(issue["location"]), set(issue["location"]["lines"])), ({"path", "lines"}, {"begin"}))
            self.assertIs(type(issue["location"]["lines"]["begin"]), int)
            self.assertGreaterEqual(issue["location"]["lines"]["begin"], 1)
            self.assertRegex(issue["location"]["path"], r"^(?!\./)[^/]")  # relative to the repository, without ./
        self.assertEqual(len({issue["fingerprint"] for issue in issues}), len(issues))

    def test_annotations_name_the_hottest_line_of_the_function(self):
        clone = "/builds/shop,api/100%"
        frame = lambda name, line, file=None: ((name, clone + "/src/%s.go" % name if file is None else file, line),)
        sides = {}
        for name, slow in (("before", 10), ("after", 90)):
            profile = Profile([("samples", "count")], time_ns=now_ms() * 1_000_000)
            inlined = (("inlined", "inlined.go", 9), ("outer", "outer.go", 5))
            for stack, count in (([frame("leaf", 3), frame("decode", 20)], 100_000), ([frame("decode", 30)], slow * 1000),
                                 ([frame("decode", 31)], slow * 500), ([frame("bare", 0, "")], slow * 200), ([inlined], slow * 100),
                                 ([frame("dropped", 8, "./src/dropped.go")], 50_000 if name == "before" else 1)):
                profile.samples.append(([*stack, frame("main", 7)], [count], {}))
            sides[name] = self.path(name + "-lines.pb")
            with open(sides[name], "wb") as file:
                file.write(profile.encode())
            self.server.push(profile.encode(), {"service_name": "lines", "__name__": "process_cpu", "version": name})
        selectors = ['{service_name="lines",version="%s"}' % name for name in ("before", "after")]
        conditions = ["self(^decode$) > 0%", "total(^decode$) > -100%", "self(bare|inlined) > 0%", "self(dropped) < 0%"]
        arguments = [word for text in conditions for word in ("--fail-on", text)]
        places = {"self(^decode$) > 0%": ("src/decode.go", 30), "total(^decode$) > -100%": ("src/decode.go", 20),
                  "self(dropped) < 0%": ("src/dropped.go", 8)}
        for compared in (selectors, list(sides.values())):
            with self.subTest(compared):
                report = self.path("lines.json")
                environment = {"CI_PROJECT_DIR": clone + "/"}
                self.gate(*compared, *arguments, "--annotate", "gitlab=" + report, code=FAILED, env=environment)
                with open(report) as file:
                    issues = json.load(file)
                self.check_code_quality(issues)
                for issue in issues:
                    place = (issue["location"]["path"], issue["location"]["lines"]["begin"])
                    function = issue["description"].split(":")[0]
                    want = {"bare": ("unknown", 1), "inlined": ("inlined.go", 9)}.get(function) or places[issue["check_name"]]
                    self.assertEqual(place, want, issue)
                self.assertEqual(sorted(issue["description"].split(":")[0] for issue in issues),
                                 ["bare", "decode", "decode", "dropped", "inlined"])

                # A comma would end a property of GitHub's command; without a clone, paths stay as they are.
                _, err = self.gate(*compared, *arguments, "--annotate", "github", code=FAILED)
                self.assertIn("::error file=/builds/shop%2Capi/100%25/src/decode.go,line=30,title=hearth diff::self(^decode$)", err)
                self.assertIn("::error title=hearth diff::self(bare|inlined) > 0%25: bare: self ", err)

    def test_a_change_that_shows_only_in_total_is_found(self):
        sides = [selector("spread", map(str, range(first, PARTS, 2))) for first in (0, 1)]
        conditions = ["--fail-on", "total(^decode$) > +2%", "--fail-on", "self(decode|caller|step|leaf) > 0%",
                      "--fail-on", "total(caller|step|leaf) > 0%"]
        junit = self.path("total.xml")
        _, err = self.gate(*sides, *RANGE, *conditions, "--junit", junit, code=FAILED)
        crossing = r"decode: total (\d+\.\d\d)% -> (\d+\.\d\d)%, \+(\d+\.\d\d)%, q = (\S+)"
        found = re.search(r"^crossed: total\(\^decode\$\) > \+2%\n  " + crossing, err, re.M)
        before, after, change, q = map(float, found.groups())

        # A recursive call counts once: 5 of 105 samples, then 10 of 110.
        self.assertAlmostEqual(before, 100 * 5 / 105, delta=1)
        self.assertAlmostEqual(after, 100 * 10 / 110, delta=1.5)
        self.assertAlmostEqual(change, 100 * (after - before) / before, delta=1)
        self.assertLessEqual(q, 0.05)
        self.assertEqual(len(re.findall("^not crossed", err, re.M)), 2, err)
        suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
        self.assertRegex(suite.find("testcase/failure").get("message"), crossing)
        self.assertEqual(suite.get("failures"), "1")

        # The other direction, and a limit that the change does not reach.
        self.gate(*reversed(sides), *RANGE, "--fail-on", "total(^decode$) > 0%", code=OK)
        self.gate(*reversed(sides), *RANGE, "--fail-on", "total(^decode$) < -2%", code=FAILED)
        self.gate(*sides, *RANGE, "--fail-on", "total(^decode$) > +500%", code=OK)

        # Two files take the same way, without noise.
        files = [self.path("total-%d.pb" % i) for i in range(2)]
        for side, path in zip(sides, files):
            subprocess.run([HEARTH, "query", "profile", side, *RANGE, "-o", "pprof=" + path], check=True, timeout=60,
                           capture_output=True, env=server_environment({"HEARTH_URL": self.url}))
        _, err = self.gate(*files, "--type", "cpu", "--fail-on", "total(^decode$) > +2%", url="http://127.0.0.1:1", code=FAILED)
        self.assertIn("  decode: total %.2f%% -> %.2f%%, +%.2f%%, noise is not known" % (before, after, change), err)

    def test_changes_within_noise_and_below_the_limit_pass(self):
        self.gate(*self.worse, *RANGE, "--fail-on", "self(^count_words$) > +1000%", code=OK)
        self.gate(*self.worse, *RANGE, "--fail-on", "self(^count_words$) < 0pt", code=OK)
        _, err = self.gate(*self.worse, *RANGE, "--fail-on", "self(no_such_function) > 0%", code=OK)
        self.assertIn("no function has such a name", err)

    def test_values_have_the_unit_of_the_profile(self):
        self.gate(*self.worse, *RANGE, "--fail-on", "self(^count_words$) > +1ms", code=FAILED)
        self.gate(*self.worse, *RANGE, "--fail-on", "self(^count_words$) > +1h", code=OK)
        for unit, code in (("MB", USAGE), ("", USAGE)):
            _, err = self.gate(*self.worse, *RANGE, "--fail-on", "self(^count_words$) > +1" + unit, code=code)
            self.assertIn("the profile is measured in nanoseconds; allowed units: ns to h, % and pt", err)

    def test_each_outcome_has_its_exit_code(self):
        condition = ["--fail-on", "self(.) > 0%"]
        same = selector("recorded", "0123456789")
        nobody = '{service_name="nobody"}'
        junit = self.path("missing.xml")
        self.gate(same, same, *RANGE, *condition, code=OK)
        self.gate(*self.worse, *RANGE, *condition, code=FAILED)
        self.gate(*self.worse, *RANGE, *condition, "--junit", "/nowhere/junit.xml", code=FAILED)
        for wrong in ("self(x)", "x(y) > 1%", "self() > 1%", "self(x) > ten%", "self(x) = 1%", "self(() > 1%", "self(x) > 1 parsec"):
            _, err = self.gate(same, "--fail-on", wrong, code=USAGE)
            self.assertIn("--fail-on", err)
        self.assertIn("give --fail-on", self.gate(same, "--junit", junit, code=USAGE)[1])
        self.assertIn("github or gitlab=FILE", self.gate(same, *condition, "--annotate", "jenkins", code=USAGE)[1])
        self.gate(same, *condition, url="http://127.0.0.1:1", code=SERVER)

        # An empty side: nothing was compared, whatever the condition.
        for sides, want in (([nobody, same], "nothing in the base"), ([same, nobody], "nothing to compare"), ([nobody, nobody], "")):
            self.gate(*sides, *RANGE, *condition, "--junit", junit, code=NO_DATA)
            suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
            self.assertEqual((suite.get("errors"), suite.get("failures")), ("1", "0"))
            self.assertIn(want, suite.find("testcase/error").get("message"))
        self.assertEqual(self.gate(nobody, same, *RANGE, code=OK)[0].splitlines()[0],
                         "there is nothing in the base: every function is new")

    def test_files_are_judged_without_noise_and_names_are_escaped(self):
        hostile = 'evil<&"\x1b]0;\u0085\uffff%'
        paths = [self.path(name) for name in ("before.pb", "after.pb")]
        for path, counts in zip(paths, ((100_000, 0, 9), (100_000, 30_000, 99))):
            profile = Profile([("samples", "count")], time_ns=now_ms() * 1_000_000)
            for name, count in zip(("main", hostile, "tiny"), counts):
                profile.add([name], [count])
            with open(path, "wb") as file:
                file.write(profile.encode())
        junit = self.path("files.xml")
        _, err = self.gate(*paths, "--fail-on", "self(evil) > +5", "--junit", junit, url="http://127.0.0.1:1", code=FAILED)
        self.assertIn("self 0 -> 30k, +30k, noise is not known", err)
        self.assertNotIn("\x1b", err)
        case = xml.etree.ElementTree.parse(junit).getroot().find("testsuite/testcase")
        self.assertIn('evil<&"\\u001b]0;\\u0085?%', case.find("failure").text)

        # Functions with less than 0.1 % of both sides grow by chance.
        self.gate(*paths, "--fail-on", "self(tiny) > +50%", url="http://127.0.0.1:1", code=OK)


if __name__ == "__main__":
    unittest.main()
