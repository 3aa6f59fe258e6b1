"""hearth import pyroscope, from one hearthd into another: exact totals, a killed run, repeats, differences."""

import json
import os
import signal
import subprocess
import unittest

from pprof import Decoded, Profile
from questions import CPU, SAMPLES
from server import HEARTH, eventually, now_ms, server_environment, temporary_directory
from test_access import AccessServer
from test_cli import FAILED, NO_DATA, OK, hearth

STEP = 15_000
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
HEAP = "memory:inuse_space:bytes:space:bytes"
QUERIER = "querier.v1.QuerierService/"


class Side:
    """A server with a token for all tenants."""

    def __init__(self, *options):
        self.access = AccessServer(*options)
        self.server, self.url = self.access.server, "http://" + self.access.address
        self.token = self.access.token(("*", "ingest"), ("*", "viewer"))["token"]
        self.admin = self.access.token(("*", "admin"))["token"]
        self.token_file = os.path.join(temporary_directory(), "token")
        with open(self.token_file, "w") as file:
            os.chmod(self.token_file, 0o600)
            file.write(self.token + "\n")

    def headers(self, tenant):
        return {"authorization": "Bearer " + self.token, "x-scope-orgid": tenant}

    def push(self, profile, labels):
        self.server.push(profile, labels, metadata=list(self.headers("old").items()))

    def series(self, tenant, profile_type, start, end):
        """{labels: {time: total}}"""
        answer = self.server.connect(QUERIER + "SelectSeries", {
            "profileTypeID": profile_type, "labelSelector": "{}", "start": start, "end": end + 1, "step": STEP / 1000,
            "groupBy": ["service_name", "host", "a.b"],
        }, self.headers(tenant))
        return {
            tuple((pair["name"], pair["value"]) for pair in series["labels"]):
                {int(p["timestamp"]): p["value"] for p in series["points"] if int(p["timestamp"]) > start}
            for series in answer.get("series", [])
        }

    def stacks(self, tenant, *query):
        return Decoded(self.server.merge_pprof(*query, metadata=list(self.headers(tenant).items()))).by_stack(0)


class Import(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.source = Side()
        cls.target = Side()
        cls.end = now_ms() // STEP * STEP
        cls.start = cls.end - 30 * STEP
        for i in range(30):
            at = cls.start + (i + 1) * STEP
            # At the end of a step, within its last millisecond, at the beginning of the step, and inside of it.
            for host, offset_ns in [("a", 0), ("a", 999_999), ("b", -(STEP - 1) * 1_000_000), ("b,\"1\"", -7_000_000_001)]:
                cls.push_one(at * 1_000_000 + offset_ns, i, {"service_name": "shop", "host": host})
            # A series whose labels are some of the others'.
            cls.push_one(at * 1_000_000 - 5_000_000_000, i, {"service_name": "shop"})
        heap = Profile([("inuse_space", "bytes")], period_type=("space", "bytes"), time_ns=cls.end * 1_000_000 - 1)
        heap.add(["main", "new"], [4096])
        cls.source.push(heap.encode(), {"service_name": "cart", "__name__": "memory", "a.b": "c"})

    @classmethod
    def tearDownClass(cls):
        cls.source.access.stop()
        cls.target.access.stop()

    @classmethod
    def push_one(cls, time_ns, i, labels):
        profile = Profile(TYPES, time_ns=time_ns, duration_ns=10_000_000_000)
        profile.add(["main", "handle", "f%d" % (i % 7)], [i + 1, (i + 1) * 10_000_001])
        profile.add(["main", "gc"], [1, 10_000_000])
        cls.source.push(profile.encode(), {"__name__": "process_cpu", **labels})

    def setUp(self):
        self.tenant = self.id().split(".")[-1][:40]

    def arguments(self, *more):
        return [
            "import", "pyroscope", self.source.url, "--source-tenant", "old", "--source-token-file", self.source.token_file,
            "--url", self.target.url, "--tenant", self.tenant, "--token-file", self.target.token_file,
            "--from", str(self.start), "--to", str(self.end), "-o", "jsonl", *more,
        ]

    def run_import(self, code, *more, **others):
        done = hearth(*self.arguments(*more), **others)
        self.assertEqual(done.code, code, done.err)
        return {row["type"]: row for row in map(json.loads, done.lines())}, done

    def copied(self, profile_type):
        return self.target.series(self.tenant, profile_type, self.start, self.end)

    def wanted(self, profile_type):
        return self.source.series("old", profile_type, self.start, self.end)

    def check_copy(self):
        for profile_type in (CPU, SAMPLES, HEAP):
            self.assertEqual(self.copied(profile_type), self.wanted(profile_type))
        for selector in ("{}", '{host="a"}', '{host=""}', '{host="b,\\"1\\""}'):
            query = (CPU, selector, self.start + 1, self.end + 1)
            stacks = self.source.stacks("old", *query)
            self.assertTrue(stacks)
            self.assertEqual(self.target.stacks(self.tenant, *query), stacks)

    def test_a_copy_has_the_same_totals_and_stacks_and_a_repeat_copies_nothing(self):
        planned, _ = self.run_import(OK, "--dry-run")
        self.assertEqual(planned[CPU]["copied"], 0)
        self.assertEqual(self.copied(CPU), {})

        rows, _ = self.run_import(OK, "--rate", "100000")
        self.assertEqual(rows[CPU]["steps"], planned[CPU]["steps"])
        self.assertEqual(rows[CPU]["copied"], rows[CPU]["steps"])
        self.assertEqual(rows[CPU]["total"], rows[CPU]["source_total"])
        self.check_copy()

        rows, _ = self.run_import(OK)
        self.assertEqual((rows[CPU]["copied"], rows[CPU]["present"]), (0, rows[CPU]["steps"]))
        self.check_copy()

    def test_a_killed_copy_is_continued(self):
        process = subprocess.Popen(
            [HEARTH, *self.arguments("--rate", "40")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=server_environment({}),
        )
        self.addCleanup(process.wait)
        eventually(lambda: sum(map(len, self.copied(CPU).values())) > 20, what="the first copied steps")
        process.send_signal(signal.SIGKILL)
        self.assertEqual(process.wait(), -signal.SIGKILL)

        rows, _ = self.run_import(OK, "--rate", "100000")
        self.assertGreater(rows[CPU]["present"], 20)
        self.assertEqual(rows[CPU]["present"] + rows[CPU]["copied"], rows[CPU]["steps"])
        self.check_copy()

    def test_steps_with_other_data_are_reported_and_left_alone(self):
        rows, _ = self.run_import(OK, '{host="b"}', "--type", CPU, "--rate", "100000")
        self.assertEqual(list(rows), [CPU])
        before = self.copied(CPU)

        # A shorter step would store the same samples a second time.
        rows, done = self.run_import(FAILED, '{host="b"}', "--type", CPU, "--step", "5s")
        self.assertEqual(rows[CPU]["copied"], 0)
        self.assertIn("Hearth has 0", done.err)
        self.assertEqual(self.copied(CPU), before)

    def test_profiles_that_the_server_refuses_are_reported(self):
        limited = hearth(
            "admin", "limits", self.tenant, "max-profile-bytes=64", env={"HEARTH_URL": self.target.url, "HEARTH_TOKEN": self.target.admin},
        )
        self.assertEqual(limited.code, OK, limited.err)
        rows, done = self.run_import(FAILED, "--type", HEAP)
        self.assertEqual((rows[HEAP]["copied"], rows[HEAP]["differing"], rows[HEAP]["total"]), (0, 1, 0))
        self.assertIn("max-profile-bytes", done.err)

    def test_a_selection_without_profiles_is_no_success(self):
        self.run_import(NO_DATA, '{host="nobody"}')
        done = hearth(*self.arguments('{host="nobody"}', "-o", "table"))
        self.assertEqual(done.code, NO_DATA)
        self.assertIn("the source has no profiles of this selection", done.err)

    def test_mistakes_are_named_in_the_error(self):
        for more, said in [
            (["--step", "1ms"], "between 1s and 1d"), (["--step", "2d"], "between 1s and 1d"),
            (["--to", str(self.start)], "no whole step"), (["--source-token-file", "/missing"], "/missing"),
            (["--source-token-file", self.target.token_file], self.source.url + ": "),
        ]:
            done = hearth(*self.arguments(*more))
            self.assertNotIn(done.code, (OK, NO_DATA), more)
            self.assertIn(said, done.err)


if __name__ == "__main__":
    unittest.main()
