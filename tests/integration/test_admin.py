"""Explain, notes and hearth.v1.AdminService, by gRPC, Connect and the client. Field numbers by hand, as in wire.py."""

import collections
import http.client
import json
import os
import pty
import re
import subprocess
import unittest

import questions
import wire
from pprof import Profile
from server import HEARTH, RpcError, Server, eventually, now_ms, server_environment

OK, FAILED, USAGE, NO_DATA, AUTH, SERVER = range(6)
EXPLAIN = "hearth.v1.QueryService/Explain"
QUERIER = "querier.v1.QuerierService/"
ADMIN = "hearth.v1.AdminService/"
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
CPU = questions.CPU
HOUR = 3600 * 1000
DAY = 24 * HOUR
LATEST = 2**63 - 1
SOURCES = ["SOURCE_PROFILE", "SOURCE_LATE", "SOURCE_SEGMENT", "SOURCE_HOUR_TOTALS", "SOURCE_ROLL_10M",
           "SOURCE_ROLL_1H", "SOURCE_ROLL_1D"]


def profile(time_ms):
    p = Profile(TYPES, time_ns=time_ms * 1_000_000, duration_ns=10_000_000_000)
    p.add(["main", "work"], [3, 30_000_000])
    p.add(["main", "idle"], [1, 10_000_000])
    return p.encode()


class Base(unittest.TestCase):
    maxDiff = None
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)
        cls.url = "http://127.0.0.1:%d" % cls.server.port

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def push(cls, service, time_ms, metadata=None, **labels):
        labels = {"__name__": "process_cpu", "service_name": service, **labels}
        cls.server.push(profile(time_ms), labels, metadata=metadata)

    def admin(self, method, **message):
        return self.server.connect(ADMIN + method, message)

    def refused(self, code, text, method, **message):
        with self.assertRaises(RpcError) as caught:
            self.server.connect(method, message)
        self.assertEqual(caught.exception.code, code, caught.exception.message)
        self.assertIn(text, caught.exception.message)

    def hearth(self, *arguments, stdin=b"", env=None):
        done = subprocess.run(
            [HEARTH, *arguments], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
            env=server_environment({"TZ": "UTC", "USER": "ada", "HEARTH_URL": self.url, **(env or {})}),
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def run_ok(self, *arguments, **more):
        code, out, err = self.hearth(*arguments, **more)
        self.assertEqual(code, OK, err)
        return out, err

    def count(self, service, start, end):
        """Samples of the service that questions see."""
        points = self.server.select_series(questions.SAMPLES, '{service_name="%s"}' % service, start, end, 3600)
        return sum(value for _, series in points for _, value in series)


class Explain(Base):
    """Of rows only: without a builder no clock decides what the plan is."""

    options = ("--builder=false",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.now = now_ms()
        for pod in ("a", "b", "c"):
            for minutes in range(5):
                cls.push("shop", cls.now - minutes * 60_000, pod=pod)
        cls.push("other", cls.now)
        cls.question = {"profileType": CPU, "labelSelector": '{service_name="shop"}', "start": cls.now - HOUR, "end": cls.now}

    def explain(self, **changes):
        return self.server.connect(EXPLAIN, {**self.question, **changes})

    def test_the_plan_of_fresh_profiles_is_their_rows(self):
        answer = self.explain()
        self.assertEqual((answer["services"], answer["series"]), ("1", "3"))
        self.assertEqual(sum(int(leg.get("rows", 0)) for leg in answer["legs"]), 15)
        self.assertEqual(int(answer["rows"]), 15)
        self.assertLessEqual({leg["source"] for leg in answer["legs"]}, set(SOURCES))
        self.assertIn("SOURCE_PROFILE", {leg["source"] for leg in answer["legs"]})
        self.assertGreater(int(answer["bytes"]), 0)
        self.assertEqual(int(answer["bytes"]), sum(int(leg.get("bytes", 0)) for leg in answer["legs"]))
        self.assertGreater(answer["milliseconds"], 0)

    def test_totals_are_the_sums_of_the_legs_by_source(self):
        answer = self.explain()
        sums = {}
        for leg in answer["legs"]:
            rows, size = sums.get(leg["source"], (0, 0))
            sums[leg["source"]] = rows + int(leg.get("rows", 0)), size + int(leg.get("bytes", 0))
        self.assertEqual({t["source"]: (int(t.get("rows", 0)), int(t.get("bytes", 0))) for t in answer["totals"]}, sums)
        order = [SOURCES.index(t["source"]) for t in answer["totals"]]
        self.assertEqual(order, sorted(order))

    def test_legs_lie_within_the_queried_range(self):
        answer = self.explain()
        self.assertEqual(int(answer["fromNs"]), self.question["start"] * 1_000_000)
        for leg in answer["legs"]:
            self.assertLess(int(leg["fromNs"]), int(leg["toNs"]))
            if leg["source"] == "SOURCE_PROFILE":
                self.assertGreaterEqual(int(leg["fromNs"]), int(answer["fromNs"]))
                self.assertLessEqual(int(leg["toNs"]), int(answer["toNs"]) + 1)

    def test_grpc_and_connect_give_equal_answers(self):
        fields = [(1, CPU), (2, self.question["labelSelector"]), (3, self.question["start"]), (4, self.question["end"])]
        found = self.server.call(EXPLAIN, fields)
        answer = self.explain()
        self.assertEqual((found[3][-1], found[4][-1], found[7][-1]), (1, 3, 15))
        self.assertEqual(len(found[5]), len(answer["legs"]))
        for raw, leg in zip(found[5], answer["legs"]):
            f = wire.decode(raw)
            self.assertEqual(f[1][-1], SOURCES.index(leg["source"]) + 1)
            self.assertEqual((f[3][-1], f[4][-1]), (int(leg["fromNs"]), int(leg["toNs"])))

    def test_a_time_series_has_a_plan_of_its_own(self):
        answer = self.explain(kind="QUESTION_KIND_TIME_SERIES", step=60, groupBy=["pod"])
        self.assertEqual(int(answer["rows"]), 15)
        self.refused("invalid_argument", "step", EXPLAIN, **self.question, kind="QUESTION_KIND_TIME_SERIES")

    def test_single_profiles_are_read_by_their_totals_or_by_their_rows(self):
        totals = self.explain(kind="QUESTION_KIND_PROFILE_TOTALS")
        rows = self.explain(kind="QUESTION_KIND_PROFILE_ROWS")
        self.assertEqual((int(totals["rows"]), int(rows["rows"])), (15, 15))
        self.assertEqual((totals["series"], rows["series"]), ("3", "3"))
        self.assertGreater(int(rows["bytes"]), int(totals["bytes"]), "of totals, the index is read alone")

    def test_labels_are_read_from_the_index_alone(self):
        question = {**self.question, "profileType": "", "kind": "QUESTION_KIND_CATALOGUE"}
        series = self.server.connect(QUERIER + "Series", {
            "matchers": [question["labelSelector"]], "start": question["start"], "end": question["end"]})["labelsSet"]
        answer = self.server.connect(EXPLAIN, question)
        self.assertEqual((answer["services"], int(answer["series"])), ("1", len(series)))
        self.assertEqual({"legs", "rows", "bytes", "milliseconds"} & set(answer), set())
        self.assertIn("index of labels", answer["notes"][0])
        everything = self.server.connect(EXPLAIN, {**question, "labelSelector": ""})
        self.assertEqual(everything["services"], "2")
        self.refused("invalid_argument", "profile_type is set", EXPLAIN, **{**question, "profileType": CPU})

    def test_lists_read_each_row_once(self):
        for kind_of, rows in ({"profileType": ""}, 15), ({}, 15), ({"labels": [{"name": "pod", "value": "b"}]}, 5):
            answer = self.explain(kind="QUESTION_KIND_PROFILE_LIST", **kind_of)
            self.assertEqual(int(answer["rows"]), rows, kind_of)
            self.assertIn("its page is full", answer["notes"][0])
        self.refused("invalid_argument", "label 0 is empty", EXPLAIN, **self.question, kind="QUESTION_KIND_PROFILE_LIST", labels=[{"value": "b"}])

    def test_ids_restrict_the_rows(self):
        listed = self.server.connect("hearth.v1.ProfileService/ListProfiles", {"filter": self.question, "pageSize": 2})["profiles"]
        ids = [profile["id"] for profile in listed]
        for kind in ("QUESTION_KIND_MERGE", "QUESTION_KIND_PROFILE_ROWS"):
            with self.subTest(kind):
                self.assertEqual(int(self.explain(kind=kind, profileIds=ids)["rows"]), 2)
                self.assertNotIn("rows", self.explain(kind=kind, spanIds=["00000000000000aa"]))
                self.assertNotIn("rows", self.explain(kind=kind, traceIds=["000000000000000000000000000000aa"]))
        self.refused("invalid_argument", "are for QUESTION_KIND_MERGE", EXPLAIN, **self.question, kind="QUESTION_KIND_PROFILE_TOTALS", spanIds=["aa"])
        self.refused("invalid_argument", "profile_ids", EXPLAIN, **self.question, profileIds=["x"])

    def test_a_selector_without_matches_has_no_legs(self):
        answer = self.explain(labelSelector='{service_name="nobody"}')
        self.assertNotIn("legs", answer)
        self.assertNotIn("series", answer)

    def test_bad_queries_are_refused_with_the_error_of_the_query(self):
        for text, changes in (
            ("missing time range", {"start": 0}),
            ("after end time", {"start": self.now + 10, "end": self.now}),
            ("selector", {"labelSelector": "{"}),
            ("profile type", {"profileType": "nonsense"}),
            ("kind 9 is not known", {"kind": 9}),
        ):
            with self.subTest(changes):
                self.refused("invalid_argument", text, EXPLAIN, **{**self.question, **changes})

    # ---- the client ----

    def test_every_query_command_explains_without_running_the_query(self):
        selector = '{service_name="shop"}'
        for command in (["flame"], ["query", "flamegraph"], ["query", "top"], ["top"], ["query", "profile"], ["query", "timeline"],
                        ["query", "go-pgo"], ["heatmap"], ["heatmap", "--by-kind", "span"], ["label-stats", "pod"],
                        ["spans", "top"], ["spans", "list"], ["spans", "count"]):
            out, err = self.run_ok(*command, selector, "--since", "1h", "--explain", "--type", CPU)
            self.assertTrue(out.startswith("3 series of 1 service: %s, " % CPU), out)
            self.assertRegex(out, r"(?m)^profiles +15 .* 3  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ to ")
            self.assertRegex(out, r"(?m)^all +15 ")
            self.assertNotIn("main", out)
            self.assertTrue(all(len(line) <= 140 for line in out.splitlines()), out)
            self.assertRegex(err, r"^range: ")

    def test_lists_and_the_catalogue_explain(self):
        selector = '{service_name="shop"}'
        for command in (["profiles", "list"], ["profiles", "facets"], ["query", "exemplars"], ["query", "exemplars", "--by-kind", "span"]):
            out, _ = self.run_ok(*command, selector, "--since", "1h", "--explain", "--type", CPU)
            self.assertRegex(out, r"(?m)^all +15 ")
        self.assertRegex(self.run_ok("profiles", "list", "--label", "pod=a", "--explain")[0], r"(?m)^all +5 ")
        for command in (["types"], ["labels"], ["values", "pod"], ["series"], ["cardinality"]):
            out, _ = self.run_ok("query", *command, selector, "--since", "1h", "--explain")
            self.assertRegex(out, r"^\d+ series of 1 service: 20.*\n\nnote: read from the index of labels in memory; no profile is read\n$")

    def test_ids_of_profiles_are_part_of_the_plan(self):
        one = json.loads(self.run_ok("profiles", "list", '{service_name="shop"}', "-n", "1", "-o", "json")[0])["profiles"][0]["id"]
        out, _ = self.run_ok("top", '{service_name="shop"}', "--profile-id", one, "--since", "1h", "--explain", "--type", CPU)
        self.assertRegex(out, r"(?m)^all +1 ")

    def test_explain_prints_json_for_scripts(self):
        for arguments in (["--explain=json"], ["--explain", "-o", "json"]):
            out, _ = self.run_ok("query", "top", '{service_name="shop"}', *arguments, "--type", CPU)
            self.assertEqual(int(json.loads(out)["rows"]), 15)

    def test_commands_without_a_plan_refuse_explain(self):
        for command in (["ready"], ["rules", "list"], ["version"], ["admin", "status"]):
            code, out, err = self.hearth(*command, "--explain")
            self.assertEqual((code, out), (USAGE, ""))
            self.assertIn("does not take --explain: it is for top, flame", err)
        code, _, err = self.hearth("flame", "--explain=yaml")
        self.assertEqual(code, USAGE)
        self.assertIn('"yaml" is not a value for --explain', err)
        self.assertEqual(self.hearth("flame", '{service_name="nobody"}', "--explain", "--type", CPU)[0], NO_DATA)


class Status(Base):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.now = now_ms()
        cls.push("shop", cls.now, pod="a")

    def test_status_names_the_builder_and_the_tables(self):
        status = eventually(lambda: (s := self.admin("Status")).get("hasBuilder") and s, 30, what="a builder")
        self.assertGreater(int(status["leaseToken"]), 0)
        self.assertGreater(len(status["builderHost"]), 0)
        tables = {t["table"]: int(t.get("bytes", 0)) for t in status["tables"]}
        self.assertLessEqual({"profile", "segment", "roll_10m", "roll_1h", "roll_1d"}, set(tables))
        self.assertGreater(tables["profile"], 0)
        self.assertLess(abs(int(status["oldestProfileMs"]) - self.now), DAY)
        found = self.server.call(ADMIN + "Status", [])
        self.assertEqual(len(found[9]), len(status["tables"]))

    def test_status_is_printed_as_text(self):
        eventually(lambda: self.admin("Status").get("hasBuilder"), 30, what="a builder")
        out, err = self.run_ok("admin", "status")
        self.assertEqual(err, "")
        for pattern in (r"(?m)^builder +\S+ \(writer \d+, lease \d+\)$", r"(?m)^behind +\S", r"(?m)^late +nothing$", r"(?m)^deletions +all done$",
                        r"(?m)^oldest +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ, .* ago$", r"(?m)^profile +[\d.]+ [KMG]iB$", r"(?m)^all "):
            self.assertRegex(out, pattern)
        self.assertIn("tables", json.loads(self.run_ok("admin", "status", "-o", "json")[0]))


class Admin(Base):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.now = now_ms()
        cls.push("shop", cls.now, pod="a")

    # ---- looking ----

    def test_doctor_has_verdicts_and_advice(self):
        checks = self.admin("Doctor")["checks"]
        self.assertGreater(len(checks), 3)
        for check in checks:
            self.assertIn(check["verdict"], ("VERDICT_OK", "VERDICT_ADVICE", "VERDICT_WRONG"))
            self.assertGreater(len(check["name"]), 0)
            self.assertEqual(check["verdict"] == "VERDICT_OK", not check.get("advice"), check)

    def test_doctor_as_text_and_its_exit_code(self):
        wrong = any(c["verdict"] == "VERDICT_WRONG" for c in self.admin("Doctor")["checks"])
        code, out, err = self.hearth("admin", "doctor")
        self.assertEqual((code, err), (FAILED if wrong else OK, ""))
        lines = out.splitlines()
        self.assertRegex(lines[-1], r"^\d+ checks: \d+ ok, \d+ advice, \d+ wrong$")
        for line in lines[:-1]:
            self.assertRegex(line, r"^((ok    |advice|wrong )  \S|        \S)")
        self.assertNotIn("\x1b", out)

    def test_doctor_fails_when_something_is_wrong(self):
        """fsync off is data loss at the next power failure: doctor must say wrong."""
        self.server.sql("ALTER SYSTEM SET fsync = off")
        self.server.sql("SELECT pg_reload_conf()")
        try:
            eventually(lambda: self.server.sql("SHOW fsync") == [["off"]], 10)
            code, out, _ = eventually(lambda: (r := self.hearth("admin", "doctor"))[0] == FAILED and r, 20, what="wrong")
            self.assertRegex(out, r"(?m)^wrong +.*fsync")
        finally:
            self.server.sql("ALTER SYSTEM RESET fsync")
            self.server.sql("SELECT pg_reload_conf()")

    # ---- rebuild ----

    def test_rebuild_takes_a_service_or_all(self):
        self.assertEqual(self.admin("Rebuild", serviceName="shop", fromMs=self.now), {})
        self.assertEqual(self.admin("Rebuild", allServices=True, fromMs=self.now), {})
        out, _ = self.run_ok("admin", "rebuild", "shop", "--since", "1m")
        self.assertEqual(out, "roll-ups of shop are built again; `hearth admin status` says how far it is\n")
        self.refused("not_found", "nobody", ADMIN + "Rebuild", serviceName="nobody", fromMs=self.now)
        for message in ({}, {"serviceName": "shop", "allServices": True, "fromMs": self.now}):
            self.refused("invalid_argument", "either service_name or all_services", ADMIN + "Rebuild", **message)
        self.refused("invalid_argument", "from_ms", ADMIN + "Rebuild", serviceName="shop")

    def test_rebuild_requires_its_arguments(self):
        for text, arguments in (
            ("admin rebuild requires a service name or --all", []),
            ("admin rebuild requires a service name or --all", ["shop", "--all"]),
            ("admin rebuild requires a start time", ["shop"]),
        ):
            code, out, err = self.hearth("admin", "rebuild", *arguments)
            self.assertEqual((code, out), (USAGE, ""))
            self.assertIn(text, err)

    # ---- erase ----

    def test_a_dry_run_counts_and_deletes_nothing(self):
        for pod in "abc":
            self.push("dry", self.now, pod=pod)
        answer = self.admin("Erase", labelSelector='{service_name="dry"}', end=LATEST, dryRun=True)
        self.assertEqual(answer, {"series": "3", "services": "1"})
        self.assertEqual(self.count("dry", self.now - HOUR, self.now + HOUR), 12)
        out, err = self.run_ok("admin", "erase", '{service_name="dry"}', "--all", "--dry-run")
        self.assertEqual((out, err), ("nothing was deleted (--dry-run)\n", "3 series of 1 service match\n"))

    def test_the_number_of_series_must_be_right(self):
        for pod in "ab":
            self.push("sure", self.now, pod=pod)
        erase = {"labelSelector": '{service_name="sure"}', "start": self.now - HOUR, "end": self.now + HOUR}
        self.refused("invalid_argument", "expected_series is missing", ADMIN + "Erase", **erase)
        self.refused("failed_precondition", "matches 2 series, not 3", ADMIN + "Erase", **erase, expectedSeries=3)
        self.assertEqual(self.count("sure", self.now - HOUR, self.now + HOUR), 8)
        answer = self.admin("Erase", **erase, expectedSeries=2, requestedBy="the test")
        self.assertGreater(int(answer["erasureId"]), 0)
        self.assertEqual(self.count("sure", self.now - HOUR, self.now + HOUR), 0)
        log = [e for e in self.admin("Erasures")["erasures"] if e["erasureId"] == answer["erasureId"]]
        self.assertEqual((log[0]["labelSelector"], log[0]["series"]), ('{service_name="sure"}', "2"))
        self.assertRegex(log[0]["requestedBy"], r"^the test \(127\.0\.0\.1:\d+\)$")
        self.assertEqual((int(log[0]["start"]), int(log[0]["end"])), (erase["start"], erase["end"]))

    def test_bad_deletions_are_refused(self):
        for text, message in (
            ("selector", {"labelSelector": "{", "dryRun": True, "end": LATEST}),
            ("", {"labelSelector": "", "dryRun": True, "end": LATEST}),
            ("", {"labelSelector": '{__profile_type__="%s"}' % CPU, "dryRun": True, "end": LATEST}),
            ("requested_by has 257 bytes", {"labelSelector": "{}", "dryRun": True, "end": LATEST, "requestedBy": "x" * 257}),
            ("", {"labelSelector": "{}", "dryRun": True, "start": 20, "end": 10}),
        ):
            with self.subTest(message):
                self.refused("invalid_argument", text, ADMIN + "Erase", **message)

    def test_the_client_deletes_with_yes(self):
        self.push("gone", self.now, pod="a")
        out, err = self.run_ok("admin", "erase", '{service_name="gone"}', "--since", "1h", "--yes", "--reason", "ticket 4711")
        self.assertRegex(out, r"^deletion \d+: 1 series hidden now, removed from the disk within minutes; ")
        self.assertIn("1 series of 1 service match\n", err)
        self.assertEqual(self.count("gone", self.now - HOUR, self.now + HOUR), 0)
        out, _ = self.run_ok("admin", "erasures")
        self.assertRegex(out, r'(?m)^ *\d+  20.* +1 +\d+  20.*  ada: ticket 4711 \(127\.0\.0\.1:\d+\)  \{service_name="gone"\}$')
        self.assertIn("erasures", json.loads(self.run_ok("admin", "erasures", "-o", "json")[0]))

    def test_the_client_deletes_nothing_without_confirmation(self):
        self.push("kept", self.now, pod="a")
        selector = '{service_name="kept"}'
        for text, arguments in (
            ("admin erase: SELECTOR is missing", []),
            ("admin erase requires a range", [selector]),
            ("--all cannot be combined", [selector, "--all", "--since", "1h"]),
            ("standard input is not a terminal", [selector, "--all"]),
        ):
            code, out, err = self.hearth("admin", "erase", *arguments)
            self.assertEqual((code, out), (USAGE, ""))
            self.assertIn(text, err)
        self.assertEqual(self.hearth("admin", "erase", '{service_name="nobody"}', "--all", "--yes")[0], NO_DATA)
        self.assertEqual(self.count("kept", self.now - HOUR, self.now + HOUR), 4)

    def on_a_terminal(self, typed, *arguments):
        main, terminal = pty.openpty()
        process = subprocess.Popen(
            [HEARTH, *arguments], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=server_environment({"TZ": "UTC", "HEARTH_URL": self.url}),
        )
        os.close(terminal)
        os.write(main, typed)
        out, err = process.communicate(timeout=60)
        os.close(main)
        return process.returncode, out.decode(), err.decode()

    def test_on_a_terminal_the_number_of_series_must_be_typed(self):
        for pod in "ab":
            self.push("asked", self.now, pod=pod)
        erase = ["admin", "erase", '{service_name="asked"}', "--all"]
        for typed in (b"yes\n", b"3\n", b"\n"):
            code, out, err = self.on_a_terminal(typed, *erase)
            self.assertEqual((code, out), (FAILED, ""))
            self.assertIn("Type the number of series to delete them: ", err)
            self.assertTrue(err.endswith("hearth: nothing was deleted\n"))
        self.assertEqual(self.count("asked", self.now - HOUR, self.now + HOUR), 8)
        code, out, _ = self.on_a_terminal(b"2\n", *erase)
        self.assertEqual(code, OK)
        self.assertIn("2 series hidden now", out)
        self.assertEqual(self.count("asked", self.now - HOUR, self.now + HOUR), 0)

    # ---- retention ----

    def test_retention_is_shown_set_and_reset(self):
        days = lambda n: str(n * DAY)
        default = {"profilesMs": days(7), "roll10mMs": days(7), "roll1hMs": days(31), "roll1dMs": days(366)}
        self.assertEqual(self.admin("GetRetention"), default)
        answer = self.admin("SetRetention", name="retain-raw", durationMs=3 * DAY)
        self.assertEqual(answer, {**default, "profilesMs": days(3)})
        self.assertEqual(self.admin("GetRetention"), answer)
        forever = self.admin("SetRetention", name="retain-1d", durationMs=0)
        self.assertNotIn("roll1dMs", forever)
        self.admin("SetRetention", name="retain-1d", reset=True)
        self.assertEqual(self.admin("SetRetention", name="retain-raw", reset=True), default)
        self.assertEqual(
            self.run_ok("admin", "retention", "set", "1h", "14d")[0],
            "name   kept  holds\nraw     7 d  profiles\n10m     7 d  roll-ups of 10 minutes\n"
            "1h     14 d  roll-ups of an hour, totals over time\n1d    366 d  roll-ups of a day\n",
        )
        self.assertIn("1h    for ever  ", self.run_ok("admin", "retention", "set", "retain-1h", "forever")[0])
        self.assertIn("1h     31 d  ", self.run_ok("admin", "retention", "reset", "1h")[0])
        self.assertEqual(json.loads(self.run_ok("admin", "retention", "show", "-o", "json")[0]), default)

    def test_bad_retention_is_refused(self):
        for message in ({"name": "retain-raw"}, {"name": "retain-raw", "reset": False}, {"name": "retain-raw", "durationMs": -1},
                        {"name": "retain-raw", "durationMs": LATEST}, {"name": "retain-2h", "durationMs": DAY}, {"durationMs": 1}):
            with self.subTest(message):
                self.refused("invalid_argument", "", ADMIN + "SetRetention", **message)
        for text, arguments in (("tiers are raw, 10m, 1h, 1d", ["set", "weeks", "7d"]), ("", ["set", "raw", "soon"]),
                                ("admin retention set: DURATION is missing", ["set", "raw"]),
                                ("there is no such admin retention command: drop", ["drop"])):
            code, out, err = self.hearth("admin", "retention", *arguments)
            self.assertEqual((code, out), (USAGE, ""))
            self.assertIn(text, err)

    # ---- the client without a server ----

    def test_sizing_needs_no_server(self):
        env = {"HEARTH_URL": "http://127.0.0.1:1"}
        out, err = self.run_ok("admin", "sizing", "--processes", "5000", "--interval=10s", env=env)
        self.assertEqual(err, "")
        self.assertIn("500 profiles/s, 300k samples/s", out)
        answer = json.loads(self.run_ok("admin", "sizing", "--processes", "5000", "--interval", "10s", "-o", "json", env=env)[0])
        self.assertEqual(answer["profilesPerSecond"], 500)
        self.assertEqual(answer["inputs"]["services"], 500)
        disk = answer["diskBytes"]
        self.assertAlmostEqual(disk["all"] / sum(v for k, v in disk.items() if k not in ("all", "take")), 1)
        for arguments in (["--processes", "none"], ["--retain-raw", "0"], ["--compaction", "maybe"], ["-o", "collapsed"]):
            code, out, err = self.hearth("admin", "sizing", *arguments)
            self.assertEqual((code, out), (USAGE, ""))


class RolledUp(Base):
    """What the builder has made shows in plans; the answers stay."""

    options = ("--rollup-min-profiles=0", "--rollup-min-profiles-1h=0")  # a block here has five profiles

    def test_plans_change_from_profiles_to_blocks_and_back_when_rebuilt(self):
        now = now_ms()
        for minutes in range(0, 240, 2):
            for pod in "ab":
                self.push("api", now - minutes * 60_000, pod=pod)
        question = {"profileType": CPU, "labelSelector": '{service_name="api"}', "start": now - 4 * HOUR, "end": now}
        sources = lambda: {t["source"] for t in self.server.connect(EXPLAIN, question)["totals"]}
        total = self.count("api", now - 4 * HOUR, now)
        eventually(lambda: "SOURCE_ROLL_1H" in sources() and self.admin("Status").get("lagMs") is None, 120, what="roll-ups")
        legs = self.server.connect(EXPLAIN, question)["legs"]
        blocks = [leg for leg in legs if leg["source"] in ("SOURCE_ROLL_10M", "SOURCE_ROLL_1H")]
        self.assertTrue(all(leg.get("wholeService") and leg["series"] == "2" for leg in blocks), blocks)
        self.assertLess(sum(int(leg.get("rows", 0)) for leg in blocks), 24)
        one = self.server.connect(EXPLAIN, {**question, "labelSelector": '{pod="a"}'})
        self.assertFalse(any(leg.get("wholeService") for leg in one["legs"]))
        self.assertIn("SOURCE_HOUR_TOTALS", {t["source"] for t in self.server.connect(
            EXPLAIN, {**question, "kind": "QUESTION_KIND_TIME_SERIES", "step": 60})["totals"]})
        self.assertEqual(self.count("api", now - 4 * HOUR, now), total)
        # The slices of a diff of four hours are ten minutes long, so its second reading uses no longer blocks.
        out, _ = self.run_ok("diff", "api", "--since", "4h", "--base-from", "now-4h", "--base-to", "now", "--explain=json", "--type", CPU)
        of_step = collections.defaultdict(set)
        for leg in json.loads(out)["legs"]:
            of_step[leg["step"]].add(leg["source"])
        self.assertIn("SOURCE_ROLL_1H", of_step["PLAN_STEP_STACKS"])
        self.assertIn("SOURCE_ROLL_10M", of_step["PLAN_STEP_PARTS"])
        self.assertNotIn("SOURCE_ROLL_1H", of_step["PLAN_STEP_PARTS"])
        out, _ = self.run_ok("flame", '{service_name="api"}', "--since", "4h", "--explain", "--type", CPU)
        self.assertRegex(out, r"(?m)^blocks of 1 h, whole service +\d")
        self.run_ok("admin", "rebuild", "api", "--since", "5h")
        self.assertEqual(self.count("api", now - 4 * HOUR, now), total)
        eventually(lambda: "SOURCE_ROLL_1H" in sources(), 120, what="roll-ups again")


class Notes(Base):
    """A range that reaches beyond retention is cut, and the answer says so."""

    options = ("--retain-raw", "2h", "--retain-10m", "2h", "--retain-1h", "2h", "--retain-1d", "2h")

    def ask(self):
        now = now_ms()
        return {"profileTypeID": CPU, "labelSelector": "{}", "start": now - 5 * HOUR, "end": now}

    def headers(self, method, message):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            connection.request("POST", "/" + method, json.dumps(message), {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            return response.status, [v for k, v in response.getheaders() if k.lower() == "hearth-note"]
        finally:
            connection.close()

    def test_every_transport_and_command_shows_the_note(self):
        self.push("shop", now_ms())
        for method in ("SelectMergeStacktraces", "SelectMergeProfile", "SelectSeries"):
            more = {"step": 60} if method == "SelectSeries" else {}
            status, notes = self.headers(questions.QUERIER + method, {**self.ask(), **more})
            self.assertEqual((status, len(notes)), (200, 1), method)
            self.assertRegex(notes[0], r"^[ -~]+$")
            fields = [(1, CPU), (2, "{}"), (3, self.ask()["start"]), (4, self.ask()["end"])]
            fields += [(6, 60.0)] if more else []
            call = self.server.channel.unary_unary("/" + questions.QUERIER + method)
            _, done = call.with_call(wire.encode(fields), timeout=60)
            self.assertEqual([k for k, _ in done.trailing_metadata() if k == "hearth-note"], ["hearth-note"])
            self.assertNotIn("hearth-note", dict(done.initial_metadata()))
        for command in (["flame"], ["query", "top"], ["query", "timeline"], ["query", "profile"]):
            _, err = self.run_ok(*command, "--since", "5h", "--type", CPU)
            self.assertEqual(len(re.findall(r"(?m)^note: \S", err)), 1, err)
        out, _ = self.run_ok("flame", "--since", "5h", "--type", CPU, "--explain")
        self.assertRegex(out, r"(?m)^note: \S")

    def test_without_omitted_services_there_is_no_note(self):
        self.push("shop", now_ms())
        status, notes = self.headers(questions.QUERIER + "SelectMergeStacktraces", {**self.ask(), "start": now_ms() - HOUR})
        self.assertEqual((status, notes), (200, []))
        self.assertNotIn("note:", self.run_ok("flame", "--since", "1h", "--type", CPU)[1])


class Tenants(Base):
    options = ("--multitenancy",)

    def test_tenants_delete_and_retain_only_their_own_profiles(self):
        now = now_ms()
        one, two = [("x-scope-orgid", "one")], [("x-scope-orgid", "two")]
        self.push("shop", now, metadata=one)
        self.push("shop", now, metadata=two)
        with self.assertRaises(RpcError) as caught:
            self.server.connect(ADMIN + "Status", {})
        self.assertEqual(caught.exception.code, "unauthenticated")
        erase = {"labelSelector": "{}", "end": LATEST, "expectedSeries": 1}
        answer = self.server.connect(ADMIN + "Erase", erase, {"X-Scope-OrgID": "one"})
        self.assertGreater(int(answer["erasureId"]), 0)
        count = lambda who: len(self.server.select_series(CPU, "{}", now - HOUR, now + HOUR, 3600, metadata=who))
        self.assertEqual((count(one), count(two)), (0, 1))
        self.assertEqual(self.server.connect(ADMIN + "Erasures", {}, {"X-Scope-OrgID": "two"}), {})
        self.server.connect(ADMIN + "SetRetention", {"name": "retain-raw", "durationMs": DAY}, {"X-Scope-OrgID": "one"})
        found = self.server.connect(ADMIN + "GetRetention", {}, {"X-Scope-OrgID": "two"})
        self.assertEqual(found["profilesMs"], str(7 * DAY))


if __name__ == "__main__":
    unittest.main()
