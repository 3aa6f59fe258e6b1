"""Changes and noise: random halves of one recording do not differ, and what was made worse is found."""

import os
import random
import subprocess
import unittest

from noise_data import (GOLDEN, PARTS, PERIOD, SHARED, SLICES, START, MINUTE, halves, read_collapsed, read_runs,
                        selector, store)
from pprof import Profile
from questions import CPU
from server import HEARTH, Server, note

SPLITS = 100
LATEST = 2**63 - 1


class Noise(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--builder=false")
        cls.addClassCleanup(cls.server.stop)

    def diff(self, left, right, type=CPU, **changed):
        range = {"start": START, "end": START + SLICES * MINUTE - 1, **changed}
        sides = [{"profileType": type, "labelSelector": selector, **range} for selector in (left, right)]
        return self.server.connect("hearth.v1.QueryService/Diff", {"left": sides[0], "right": sides[1], "noise": True})

    def assert_halves_are_equal(self, service):
        rng = random.Random(9)
        alarms = 0
        for _ in range(SPLITS):
            noise = self.diff(*halves(service, rng))["noise"]
            self.assertEqual(noise["method"], "NOISE_METHOD_PARTS")
            alarms += int(noise.get("changedNodes", 0)) + int(noise.get("changedFunctions", 0)) > 0
        self.assertLessEqual(alarms, SPLITS * 5 // 100, "%d of %d random halves seem to differ" % (alarms, SPLITS))
        return alarms

    def assert_worse_is_found(self, service, plant):
        """The odd parts spend 5 % more, in one function."""
        selectors = [selector(service, map(str, range(first, PARTS, 2))) for first in (0, 1)]
        answer = self.diff(*selectors)
        noise = answer["noise"]
        first = noise["functions"][0]
        self.assertEqual(first["name"], plant.split(";")[-1])
        self.assertLessEqual(first["q"], 0.05)
        self.assertGreater(first["low"], 0)
        self.assertLess(first["low"], 0.05 / 1.05)
        self.assertGreater(first["high"], 0.03)
        return {**answer, "selectors": selectors}

    def test_random_halves_of_a_recording_are_equal_and_a_planted_regression_is_found(self):
        runs = read_runs(GOLDEN)
        store(self.server, "recorded", runs)
        alarms = self.assert_halves_are_equal("recorded")
        plant = "<module>;main;count_words;lower"
        store(self.server, "worse", runs, plant)
        answer = self.assert_worse_is_found("worse", plant)
        n = sum(sum(run.values()) for run in runs)
        note("%d of %d random halves of %d samples seem to differ" % (alarms, SPLITS, n))

        # The command line shows the same.
        url = "http://127.0.0.1:%d" % self.server.port
        command = [HEARTH, "diff", *answer["selectors"], "--type", CPU, "--url", url]
        command += ["--from", str(START), "--to", str(START + SLICES * MINUTE - 1), "--limit", "3"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        row = lines[2].split()
        self.assertEqual((row[3], row[-1]), ("*", "lower"))
        first = answer["noise"]["functions"][0]
        self.assertEqual(row[4], "%+.2f%%..%+.2f%%" % (100 * first["low"], 100 * first["high"]))
        self.assertRegex(lines[-2], r"^\* beyond noise: [12] of \d+ .* 12 and 12 slices of time, and 5 and 5 series$")
        self.assertRegex(lines[-1], r"^total per second: [-+]\d+\.\d\d% \(95 %: [-+].*%\.\.\+.*%\)$")

        # What did not change is not coloured, and the levels are those of the flame graph.
        noise = answer["noise"]
        self.assertLess(int(noise["changedFunctions"]), 3)
        nodes = [len(level["values"]) // 7 for level in answer["flamegraph"]["levels"]]
        self.assertEqual([len(level["q"]) for level in noise["levels"]], nodes)

    def test_one_profile_of_each_side_is_judged_by_its_samples_if_they_are_known(self):
        for service, changed in (("before", 0), ("after", 200)):
            stacks = {"main;a": 503 + changed, "main;b": 497 - changed}
            for name, type, value in (("process_cpu", "cpu nanoseconds", PERIOD), ("memory", "alloc_space bytes", 8)):
                profile = Profile([tuple(type.split())], time_ns=(START + 1000) * 1_000_000)
                for stack, count in stacks.items():
                    profile.add(stack.split(";"), [count * value])
                self.server.push(profile.encode(), {"service_name": service, "__name__": name})
        sides = '{service_name="before"}', '{service_name="after"}'
        noise = self.diff(*sides)["noise"]
        self.assertEqual(noise["method"], "NOISE_METHOD_POISSON")
        self.assertIn("fewer than 4 slices", noise["reason"])
        self.assertEqual(noise["changedFunctions"], "2")
        self.assertNotIn("rate", noise)
        self.assertEqual(self.diff(sides[0], sides[0])["noise"].get("changedFunctions", "0"), "0")

        # Bytes are no samples: nothing is claimed of them.
        noise = self.diff(*sides, type="memory:alloc_space:bytes:cpu:nanoseconds")["noise"]
        self.assertNotIn("method", noise)
        self.assertIn("do not tell the number of samples", noise["reason"])
        self.assertNotIn("levels", noise)

    def test_a_side_without_data_is_not_judged(self):
        self.server.push(self.one("main;a"), {"service_name": "alone", "__name__": "process_cpu"})
        noise = self.diff('{service_name="alone"}', '{service_name="nobody"}')["noise"]
        self.assertEqual(noise, {"reason": "a side has no data"})

    def test_ranges_of_all_time_are_judged(self):
        """By their series: each slice of time is years long."""
        store(self.server, "always", read_runs(GOLDEN))
        sides = halves("always", random.Random(3))
        expected = self.diff(*sides)["flamegraph"]
        for start, end in ((1, LATEST), (START, LATEST), (-LATEST, LATEST)):
            answer = self.diff(*sides, start=start, end=end)
            self.assertEqual(answer["flamegraph"], expected)
            self.assertEqual(answer["noise"]["method"], "NOISE_METHOD_PARTS")
            self.assertEqual(answer["noise"].get("changedFunctions", "0"), "0")
            self.assertGreater(answer["noise"]["rate"]["left"], 0)

    def one(self, stack):
        profile = Profile([("cpu", "nanoseconds")], time_ns=(START + 1000) * 1_000_000)
        profile.add(stack.split(";"), [PERIOD])
        return profile.encode()

    def test_random_halves_of_a_foreign_recording_are_equal(self):
        if not os.path.exists(SHARED):
            self.skipTest("the shared recordings are not here")
        runs = read_collapsed(SHARED)
        store(self.server, "shared", runs)
        alarms = self.assert_halves_are_equal("shared")
        plant = "planted;slower"
        store(self.server, "shared-worse", runs, plant)
        self.assert_worse_is_found("shared-worse", plant)
        note("%d of %d random halves of %d samples seem to differ" % (alarms, SPLITS, len(runs)))


if __name__ == "__main__":
    unittest.main()
