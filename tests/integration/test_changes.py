"""`hearth changes`: of many services, those whose functions changed beyond noise, and no others."""

import collections
import json
import random
import subprocess
import unittest

from noise_data import GOLDEN, MINUTE, PERIOD, SLICES, START, read_runs
from pprof import Profile
from questions import CPU
from server import HEARTH, RpcError, Server, server_environment
from test_cli import NO_DATA, OK, USAGE

CHANGES = "hearth.v1.QueryService/Changes"
PLANT = ["<module>;main;count_words"]
SPREAD = ["<module>;main;render;part_%02d" % i for i in range(16)]  # a function whose callees grow
SERVICES = ["api", "cart", "mail", "search"]
DAY = 24 * 60 * MINUTE


class Changes(unittest.TestCase):
    """Four services run the same program today and yesterday; in one of them a function costs 5 % more today. In a fifth
    one, sixteen callees of a function cost a little more each, which is within noise, and the function 3 points more."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--builder=false")
        cls.addClassCleanup(cls.server.stop)
        runs = read_runs(GOLDEN)
        rng = random.Random(5)
        rng.shuffle(runs)
        quarter = len(runs) // (2 * len(SERVICES))
        for i, service in enumerate(SERVICES):
            for k, day in enumerate((START - DAY, START)):
                part = runs[(2 * i + k) * quarter:(2 * i + k + 1) * quarter]
                cls.store(service, day, part, rng, PLANT if service == "mail" and day == START else None)
        for day in (START - DAY, START):
            cls.store("pages", day, runs[-quarter:], rng, SPREAD, 0.07 if day == START else 0.04)
        cls.store("new", START, runs[:quarter], rng)
        cls.push("rare", START - DAY, {"main": 100})
        cls.push("rare", START, {"main": 100, "main;more": 100})

    @classmethod
    def store(cls, service, day, runs, rng, plant=None, more=0.05):
        slices = collections.defaultdict(collections.Counter)
        for i, run in enumerate(runs):
            slices[i * SLICES // len(runs)].update(run)
        for minute, stacks in slices.items():
            for _ in range(sum(stacks.values()) if plant is not None else 0):
                if rng.random() < more:
                    stacks[rng.choice(plant)] += 1
            cls.push(service, day + minute * MINUTE, stacks)

    @classmethod
    def push(cls, service, at_ms, stacks):
        profile = Profile([("cpu", "nanoseconds")], time_ns=(at_ms + 1000) * 1_000_000)
        for stack, count in stacks.items():
            profile.add(stack.split(";"), [count * PERIOD])
        cls.server.push(profile.encode(), {"service_name": service, "__name__": "process_cpu", "team": service[0]})

    def ask(self, selector="{}", **fields):
        end = START + SLICES * MINUTE - 1
        request = {"labelSelector": selector, "baseStart": START - DAY, "baseEnd": end - DAY, "start": START, "end": end}
        return self.server.connect(CHANGES, {**request, **fields})

    def run_hearth(self, *arguments, code=OK):
        env = server_environment({"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port, "COLUMNS": "160"})
        command = [HEARTH, "changes", *arguments, "--from", str(START), "--to", str(START + SLICES * MINUTE - 1)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_only_the_planted_change_is_found(self):
        answer = self.ask()
        rows = answer["changes"]
        self.assertEqual([(row["service"], row["function"]["name"], row.get("ofTotal", False)) for row in rows],
                         [("mail", "count_words", False), ("pages", "render", True)])
        self.assertEqual(answer["changeCount"], "2")
        function = rows[0]["function"]
        self.assertLessEqual(function["q"], 0.05)
        self.assertGreater(function["low"], 0)

        # The values are those of a diff of the service; the cost is a part of all services together.
        side = {"profileType": CPU, "labelSelector": '{service_name="mail"}'}
        end = START + SLICES * MINUTE - 1
        diff = self.server.connect("hearth.v1.QueryService/Diff", {
            "left": {**side, "start": START - DAY, "end": end - DAY}, "right": {**side, "start": START, "end": end}, "noise": True})
        judged = next(f for f in diff["noise"]["functions"] if f["name"] == "count_words")
        for field in ("name", "leftSelf", "rightSelf", "change", "low", "high"):
            self.assertEqual(function[field], judged[field])
        self.assertEqual((rows[0]["leftTotal"], rows[0]["rightTotal"]),
                         (diff["flamegraph"]["leftTicks"], diff["flamegraph"]["rightTicks"]))
        self.assertEqual((rows[0]["profileType"], rows[0]["unit"]), (CPU, "nanoseconds"))
        all_total = sum(self.total(service) for service in [*SERVICES, "pages", "new", "rare"])
        self.assertAlmostEqual(rows[0]["cost"], function["change"] * int(rows[0]["rightTotal"]) / all_total, places=9)

        # The q is for all services together, and not less than that of one of them.
        self.assertGreaterEqual(function["q"], judged["q"])
        self.assertGreater(int(answer["judgedFunctions"]), int(diff["noise"]["judgedFunctions"]))
        self.assertGreater(int(answer["judgedTotals"]), int(answer["judgedFunctions"]))

        # The self of a function whose callees grew is no change; the cost is of its total, and that is worth three points.
        total = rows[1]["total"]
        self.assertEqual(rows[1]["function"]["q"], 1)
        self.assertGreater(total["low"], 0)
        self.assertAlmostEqual(total["change"], 0.03, delta=0.015)
        self.assertAlmostEqual(rows[1]["cost"], total["change"] * int(rows[1]["rightTotal"]) / all_total, places=9)
        parts = self.run_hearth("pages", "-o", "jsonl").stdout.splitlines()
        self.assertEqual([json.loads(line)["function"] for line in parts], ["render"])

    def total(self, service):
        selection = {"profileType": CPU, "labelSelector": '{service_name="%s"}' % service,
                     "start": START, "end": START + SLICES * MINUTE - 1}
        return int(self.server.connect("hearth.v1.QueryService/Merge", {"selection": selection})["flamegraph"]["total"])

    def test_functions_that_are_not_judged_are_counted(self):
        answer = self.ask()
        self.assertEqual({name: answer[name] for name in ("compared", "unjudged", "oneSided")},
                         {"compared": "6", "unjudged": "1", "oneSided": "1"})
        self.assertNotIn("leftOut", answer)
        self.assertEqual(self.ask('{team="m"}')["compared"], "1")
        self.assertEqual(self.ask(profileType=CPU), answer)
        self.assertEqual(self.ask(profileType="memory:inuse_space:bytes:space:bytes"), {})
        self.assertEqual(self.ask('{service_name="nobody"}'), {})

        # Without the plant: yesterday with itself.
        same = self.ask(start=START - DAY, end=START - DAY + SLICES * MINUTE - 1)
        self.assertNotIn("changes", same)
        self.assertEqual(same["compared"], "6")

    def test_a_range_may_end_later_than_nanoseconds_can_say(self):
        after = START + SLICES * MINUTE
        expected = self.ask(start=after, end=after + DAY, profileType=CPU)
        self.assertEqual((expected.get("compared", "0"), expected["oneSided"]), ("0", "6"))
        for start, end in ((after, 253402300799999), (after, 2**63 - 1), (253402300799999, 2**63 - 1)):
            self.assertEqual(self.ask(start=start, end=end, profileType=CPU), expected)

    def test_the_smallest_services_beyond_the_limit_are_left_out(self):
        self.limit_pairs("2")
        self.addCleanup(self.limit_pairs, "default")
        answer = self.ask()
        self.assertEqual((answer["compared"], answer["leftOut"]), ("2", "4"))

    def limit_pairs(self, value):
        self.server.connect("hearth.v1.AdminService/SetLimits", {"changes": [{"name": "max-compared-pairs", "value": value}]})

    def test_requests_that_cannot_be_answered_are_refused(self):
        for fields, want in (
            ({"labelSelector": ""}, "selector"), ({"limit": -1}, "limit -1"), ({"start": 0}, "range"),
            ({"baseStart": START + DAY}, "start time is after"), ({"profileType": "cpu"}, "profile type"),
        ):
            request = {"labelSelector": "{}", "baseStart": 1, "baseEnd": 2, "start": 3, "end": 4, **fields}
            with self.assertRaises(RpcError) as refusal:
                self.server.connect(CHANGES, request)
            self.assertEqual(refusal.exception.code, "invalid_argument")
            self.assertIn(want, refusal.exception.message)

    def test_the_command_names_the_functions_that_got_worse(self):
        done = self.run_hearth("--against", "1d-ago")
        lines = done.stdout.splitlines()
        row = lines[1].split()
        self.assertEqual((row[1], *row[6:]), ("self", "mail", "process_cpu:cpu", "count_words"))
        for cell in (row[0], row[4]):
            self.assertRegex(cell, r"^\+\d\.\d\d%$")
        row = lines[2].split()
        self.assertEqual((row[1], *row[6:]), ("total", "pages", "process_cpu:cpu", "render"))
        self.assertRegex(lines[3], r"^beyond noise: 2 of \d+ functions in 6 comparisons of a service and a type$")
        self.assertRegex(lines[4], r"^not judged: 1 comparison with")
        self.assertEqual(lines[5], "not compared: 1 with data in one of the ranges")
        self.assertIn("base: ", done.stderr)
        self.assertEqual(json.loads(self.run_hearth("--against", "1d", "-o", "json").stdout), self.ask())
        line = json.loads(self.run_hearth("-o", "jsonl", "-n", "1").stdout)
        change = self.ask()["changes"][0]
        self.assertEqual((line["service"], line["function"], line["profile_type"]), ("mail", "count_words", CPU))
        self.assertAlmostEqual(line["cost"], 100 * change["cost"], places=9)
        self.assertEqual((line["q"], line["low"]), (change["function"]["q"], 100 * change["function"]["low"]))
        self.assertEqual(self.run_hearth().stdout, done.stdout)
        nothing = self.run_hearth("cart")
        self.assertRegex(nothing.stdout, r"^beyond noise: 0 of \d+ functions in 1 comparison of a service and a type\n$")
        self.assertIn("nothing changed beyond noise", nothing.stderr)
        self.run_hearth("nobody", code=NO_DATA)
        self.assertIn("--against", self.run_hearth("--against", "tomorrow", code=USAGE).stderr)

    def test_the_plan_has_totals_and_both_sides_twice_and_reads_no_profile(self):
        plan = json.loads(self.run_hearth("--against", "1d", "--explain=json").stdout)
        end = START + SLICES * MINUTE - 1
        same = len(SERVICES) + 1  # with `pages`
        stored = {False: same * SLICES + SLICES + 1, True: same * SLICES + 1}
        for step in ("TOTALS", "STACKS", "PARTS"):
            for of_base, rows in stored.items():
                legs = [leg for leg in plan["legs"] if leg["step"] == "PLAN_STEP_" + step and leg.get("ofBase", False) == of_base]
                self.assertEqual([int(leg["rows"]) for leg in legs], [rows], (step, of_base))
        self.assertEqual(int(plan["rows"]), 3 * sum(stored.values()))
        self.assertEqual((plan["services"], int(plan["toNs"]) // 1_000_000), (str(same + 2), end))
        steps = ["PLAN_STEP_TOTALS", "PLAN_STEP_STACKS", "PLAN_STEP_PARTS"]
        order = [(steps.index(leg["step"]), not leg.get("ofBase", False)) for leg in plan["legs"]]
        self.assertEqual(order, sorted(order))
        text = self.run_hearth("--explain", "mail").stdout
        self.assertRegex(text, r"(?m)^base: totals of services\nprofiles +%d " % SLICES)
        self.assertRegex(text, r"(?m)^all +%d " % (6 * SLICES))


if __name__ == "__main__":
    unittest.main()
