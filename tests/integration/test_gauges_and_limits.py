"""Means of gauges, timelines of functions and statistics of labels against naive answers, the same from single profiles, roll-ups
and compacted hours; limits of a tenant, which need no restart; the limits of Pyroscope."""

import os
import gzip
import collections
import http.client
import math
import random
import re
import subprocess
import unittest
from fractions import Fraction

import wire
from pprof import Decoded, Profile
from questions import QUERIER, SUM, read_series
from server import HEARTH, RpcError, Server, eventually, in_threads, now_ms

INUSE = "memory:inuse_space:bytes:space:bytes"
ALLOCATED = "memory:alloc_space:bytes:space:bytes"
QUERY = "hearth.v1.QueryService/"
ADMIN = "hearth.v1.AdminService/"
HOUR = 3_600_000
MINUTE = 60_000
BUILD = ["--builder-interval=300ms", "--rollup-grace=0", "--rollup-min-profiles-1h=4"]


def rounded(value):
    """Halves away from zero; value >= 0."""
    return math.floor(value + Fraction(1, 2))


class One:
    """A pushed profile: its series, its time, {stack: (allocated, in use)}."""

    def __init__(self, service, pod, ms, stacks):
        self.service, self.pod, self.ms, self.stacks = service, pod, ms, stacks

    def total(self, k):
        return sum(values[k] for values in self.stacks.values())


class Oracle:
    def __init__(self, seed, begin, end):
        draw = self.draw = random.Random(seed)
        self.profiles = []
        for service in ("api", "db"):
            # At paces of their own, so that the sums weigh series unlike the means; one comes and goes.
            for pod, pace in (("pod-0", 9), ("pod-1", 21), ("pod-2", 55)):
                t = begin + draw.randrange(10 * MINUTE)
                while t < end and not (pod == "pod-2" and t > begin + (end - begin) // 2):
                    self.profiles.append(One(service, pod, t, self.stacks()))
                    t = (t // 10_000 + pace * 6 + draw.randrange(30)) * 10_000 + draw.choice([0, 0, 1, 9_999])

    def stacks(self):
        out = {}
        # Some profiles have one of the types alone, as those of a process that has not allocated lately.
        allocates, holds = self.draw.choice([(1, 1)] * 6 + [(0, 1), (0, 1), (1, 0)])
        for _ in range(self.draw.randrange(1, 7)):
            stack = ("main",) + tuple("f%d" % self.draw.randrange(6) for _ in range(self.draw.randrange(1, 5)))
            in_use = self.draw.choice([1, 1, 2, 3, self.draw.randrange(1, 5000)])
            out[stack] = (self.draw.randrange(1, 2000) * allocates, in_use * holds)
        return out

    def within(self, a, b, service=None):
        """What has a value in use: the others have no such type."""
        return [p for p in self.profiles if a <= p.ms <= b and service in (None, p.service) and p.total(1) > 0]

    @staticmethod
    def means(profiles):
        """{stack: mean per scrape} of what is in use."""
        sums, counts = collections.defaultdict(int), collections.Counter()
        for p in profiles:
            counts[p.service, p.pod] += 1
            for stack, values in p.stacks.items():
                sums[p.service, p.pod, stack] += values[1]
        out = collections.defaultdict(Fraction)
        for (service, pod, stack), value in sums.items():
            out[stack] += Fraction(value, counts[service, pod])
        return {stack: rounded(value) for stack, value in out.items() if rounded(value)}

    @staticmethod
    def of_function(profile, name, k):
        """(self, total)"""
        self_value = sum(v[k] for s, v in profile.stacks.items() if s[-1] == name)
        return self_value, sum(v[k] for s, v in profile.stacks.items() if name in s)


class Gauges(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Whole hours that are over, across midnight, so that several dictionaries have the same stacks.
        cls.end = now_ms() // HOUR * HOUR
        cls.begin = cls.end - 27 * HOUR
        cls.oracle = Oracle(7, cls.begin, cls.end)
        cls.server = Server("--builder=false")
        in_threads([lambda k=k: cls.push_some(cls.oracle.profiles[k::8]) for k in range(8)])

    @classmethod
    def push_some(cls, profiles):
        for p in profiles:
            types = [("alloc_space", "bytes"), ("inuse_space", "bytes")]
            profile = Profile(types, period_type=("space", "bytes"), time_ns=p.ms * 1_000_000)
            for stack, values in p.stacks.items():
                profile.add(list(stack), list(values))
            cls.server.push(profile.encode(), {"__name__": "memory", "service_name": p.service, "pod": p.pod})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def ranges(self):
        draw = random.Random(3)
        yield self.begin, self.end - 1
        yield self.begin, self.begin + 24 * HOUR - 1
        for _ in range(4):
            a, b = sorted(draw.randrange(self.begin, self.end) for _ in range(2))
            unit = draw.choice([HOUR, 10 * MINUTE, 1])
            yield a // unit * unit, max(b // unit * unit - 1, a // unit * unit)

    def selection(self, profile_type, selector, a, b, aggregation=None):
        out = {"profileType": profile_type, "labelSelector": selector, "start": str(a), "end": str(b)}
        return {**out, "aggregation": aggregation} if aggregation else out

    def check_means(self):
        for a, b in self.ranges():
            for selector, service in (("{}", None), ('{service_name="api"}', "api")):
                expected = self.oracle.means(self.oracle.within(a, b, service))
                answer, headers = self.server.grpc_bytes(
                    QUERIER + "SelectMergeProfile", wire.encode([(1, INUSE), (2, selector), (3, a), (4, b)])
                )
                found = collections.Counter()
                for stack, value in Decoded(answer).by_stack(0).items():
                    found[tuple(line[0] for line in reversed(stack))] += value
                self.assertEqual(found, collections.Counter(expected), (selector, a, b))
                self.assertEqual(headers.get("hearth-aggregation"), "mean")
                graph = self.server.flamegraph(INUSE, selector, a, max(b, a))
                self.assertEqual(graph.total, sum(expected.values()))

    def check_timelines(self):
        cases = [(INUSE, 1, None), (INUSE, 1, "AGGREGATION_SUM"), (ALLOCATED, 0, None)]
        for step in (7 * MINUTE, HOUR, 3 * HOUR + MINUTE):
            for profile_type, k, aggregation in cases:
                for group_by, start in (((), self.begin), (("pod",), self.begin - 1)):
                    self.check_timeline(profile_type, k, aggregation, step, group_by, start)

    def check_timeline(self, profile_type, k, aggregation, step, group_by, start):
        functions = ["main", "f3", "nowhere", "f3"]
        answer = self.server.connect(QUERY + "FunctionTimeline", {
            "selection": self.selection(profile_type, "{}", start, self.end, aggregation),
            "functions": functions, "step": step / 1000, "groupBy": list(group_by),
        })
        mean = k == 1 and aggregation is None
        self.assertEqual(answer["aggregation"], "AGGREGATION_MEAN" if mean else "AGGREGATION_SUM")
        self.assertEqual(answer["unit"], "bytes")
        found = {}
        for series in answer["series"]:
            labels = tuple((l["name"], l["value"]) for l in series.get("labels", []))
            for p in series["points"]:
                place = series["function"], labels, int(p["timestamp"])
                self.assertNotIn(place, found)
                found[place] = int(p.get("self", 0)), int(p.get("total", 0))
        cells = collections.defaultdict(list)
        for p in self.oracle.profiles:
            b = max(0, -(-(p.ms - start) // step))
            t = start + b * step
            if t <= self.end and p.ms >= start - step and p.total(k) > 0:
                cells[(("pod", p.pod),) if group_by else (), t].append(p)
        expected = {}
        for (labels, t), profiles in cells.items():
            counts = collections.Counter((p.service, p.pod) for p in profiles)
            for f in set(functions):
                pair = [Fraction(0), Fraction(0)]
                for p in profiles:
                    for i, value in enumerate(self.oracle.of_function(p, f, k)):
                        pair[i] += Fraction(value, counts[p.service, p.pod] if mean else 1)
                expected[f, labels, t] = tuple(rounded(v) for v in pair)
        self.assertEqual(found, expected, (profile_type, aggregation, step, group_by))

    def check_label_stats(self):
        for label, key in (("pod", lambda p: p.pod), ("service_name", lambda p: p.service), ("none", lambda p: "")):
            a, b = self.begin + 12345, self.end - 5 * MINUTE
            groups = collections.defaultdict(list)
            for p in self.oracle.within(a, b):
                groups[key(p)].append(p)
            answer = self.server.connect(
                QUERY + "LabelStats", {"selection": self.selection(INUSE, "{}", a, b), "label": label}
            )
            self.assertEqual(answer["unit"], "bytes")
            self.assertEqual(int(answer["valueCount"]), len(groups))
            values = answer["values"]
            self.assertEqual([int(v["sum"]) for v in values], sorted((int(v["sum"]) for v in values), reverse=True))
            for v in values:
                totals = [p.total(1) for p in groups.pop(v.get("value", ""))]
                mean = sum(totals) / len(totals)
                self.assertEqual(int(v["count"]), len(totals))
                self.assertEqual(int(v["sum"]), sum(totals))
                self.assertEqual((int(v["min"]), int(v["max"])), (min(totals), max(totals)))
                self.assertAlmostEqual(v["mean"], mean, delta=1e-9 * mean)
                deviation = math.sqrt(sum((t - mean) ** 2 for t in totals) / len(totals))
                self.assertAlmostEqual(v["deviation"], deviation, delta=1e-6 * mean)
            self.assertEqual(groups, {})
        one = self.server.connect(
            QUERY + "LabelStats", {"selection": self.selection(INUSE, "{}", self.begin, self.end), "label": "pod", "limit": 1}
        )
        self.assertEqual((len(one["values"]), int(one["valueCount"])), (1, 3))
        self.assertEqual(int(one["values"][0]["series"]), 2)

    def check_all(self):
        self.check_means()
        self.check_timelines()
        self.check_label_stats()

    def restart(self, *options):
        directory = self.server.directory
        self.server.stop()
        type(self).server = Server(*options, directory=directory)

    def test_1_single_profiles_answer_like_the_oracle(self):
        # Pyroscope's way until somebody wants another.
        a, b = self.begin, self.end
        expected = sum(p.total(1) for p in self.oracle.profiles)
        _, headers = self.server.grpc_bytes(
            QUERIER + "SelectMergeStacktraces", wire.encode([(1, INUSE), (2, "{}"), (3, a), (4, b)])
        )
        self.assertEqual(headers.get("hearth-aggregation"), "sum")
        self.assertEqual(self.server.flamegraph(INUSE, "{}", a, b).total, expected)
        _, headers = self.server.grpc_bytes(
            QUERIER + "SelectMergeStacktraces", wire.encode([(1, ALLOCATED), (2, "{}"), (3, a), (4, b)])
        )
        self.assertNotIn("hearth-aggregation", headers)
        self.server.connect(ADMIN + "SetTenantSettings", {"gaugeAggregation": "AGGREGATION_MEAN"})
        self.check_all()

    def test_2_series_over_time_are_averages_under_the_setting(self):
        answer, headers = self.server.grpc_bytes(
            QUERIER + "SelectSeries",
            wire.encode([(1, INUSE), (2, "{}"), (3, self.begin), (4, self.end), (6, 3600.0), (7, SUM)]),
        )
        self.assertEqual(headers.get("hearth-aggregation"), "mean")
        ((_, points),) = read_series(wire.decode(answer))
        for t, value in points:
            totals = [p.total(1) for p in self.oracle.within(t - HOUR + 1, t)]
            self.assertAlmostEqual(value, sum(totals) / len(totals), places=6)

    def test_3_roll_ups_answer_like_single_profiles(self):
        self.restart(*BUILD, "--compaction=false")

        def built():
            return self.server.sql(
                "SELECT count(*) FROM hearth_data.roll_state WHERE built_to >= %d::int8 * 1000000" % self.end
            ) == [["2"]]

        eventually(built, 60, 0.2, "building of everything")
        self.check_all()
        self.assertGreater(self.legs("roll_1h"), 0)

    def test_4_compacted_hours_answer_like_single_profiles(self):
        self.restart(*BUILD, "--compact-after=0")

        def compacted():
            return self.server.sql("SELECT count(*) FROM hearth_data.profile") == [["0"]] or self.server.sql(
                "SELECT count(*) FROM hearth_data.roll_state WHERE compacted_to >= %d::int8 * 1000000" % (self.end - HOUR)
            ) == [["2"]]

        eventually(compacted, 60, 0.2, "compaction")
        self.check_all()
        self.assertGreater(self.legs("segment"), 0)

    def legs(self, source):
        text = self.server.http("GET", "/metrics")[2].decode()
        found = re.search(r'hearth_query_legs_total\{source="%s"\} (\d+)' % source, text)
        return int(found.group(1)) if found else 0

    def test_5_malformed_queries_are_refused(self):
        ask = {"selection": self.selection(INUSE, "{}", self.begin, self.end), "functions": ["main"], "step": 60}
        for change, part in (
            ({"functions": []}, "functions"), ({"step": 0}, "step must be"), ({"limit": -1}, "limit"),
            ({"functions": ["f%d" % i for i in range(65)]}, "more than 64"), ({"selection": None}, "selection"),
        ):
            with self.assertRaises(RpcError) as caught:
                self.server.connect(QUERY + "FunctionTimeline", {k: v for k, v in {**ask, **change}.items() if v is not None})
            self.assertEqual(caught.exception.code, "invalid_argument")
            self.assertIn(part, caught.exception.message)
        with self.assertRaises(RpcError) as caught:
            self.server.connect(QUERY + "LabelStats", {"selection": ask["selection"]})
        self.assertIn("label", caught.exception.message)


    def notes(self, method, fields):
        """The notes of an answer by HTTP, where each is a header of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        connection.request(
            "POST", "/" + method, wire.encode(fields), {"Content-Type": "application/proto"}
        )
        response = connection.getresponse()
        self.assertEqual((response.read() is not None, response.status), (True, 200))
        found = [v for k, v in response.getheaders() if k.lower() == "hearth-note"]
        connection.close()
        return found

    def test_6_every_cut_is_reported(self):
        ask = [(1, ALLOCATED), (2, "{}"), (3, self.begin), (4, self.end)]
        self.assertEqual(self.notes(QUERIER + "SelectMergeStacktraces", ask), [])
        n_all = self.server.flamegraph(ALLOCATED, "{}", self.begin, self.end).count()
        for format in (1, 2):
            (note,) = self.notes(QUERIER + "SelectMergeStacktraces", ask + [(5, 3), (6, format)])
            self.assertIn("of %d nodes those beyond the largest 3 (max_nodes) are folded" % n_all, note)
            self.assertIn("ask for more with max_nodes, at most 1048576 (max-flamegraph-nodes)", note)
        (note,) = self.notes(QUERIER + "SelectMergeProfile", ask + [(5, 3)])
        self.assertIn("of %d frames those beyond the largest 3" % n_all, note)
        (note,) = self.notes(QUERIER + "SelectSeries", ask + [(5, "pod"), (6, 3600.0), (9, 2)])
        self.assertIn("2 of 3 series are in the answer", note)
        self.server.connect(ADMIN + "SetLimits", {"changes": [
            {"name": "max-query-lookback", "value": "2h"}, {"name": "default-flamegraph-nodes", "value": "4"},
        ]})
        moved, folded = self.notes(QUERIER + "SelectMergeStacktraces", ask)
        self.assertIn("the range begins 2h ago: queries may look back no further (max-query-lookback)", moved)
        self.assertIn("beyond the largest 4 (default-flamegraph-nodes)", folded)
        ask[3] = (4, now_ms() - 3 * HOUR)
        (note,) = self.notes(QUERIER + "SelectMergeStacktraces", ask)
        self.assertIn("older than queries may look back", note)


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--multitenancy", "--limits.profile=pyroscope", "--max-samples=50")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def set(self, tenant, **changes):
        changes = [{"name": name.replace("_", "-"), "value": value} for name, value in changes.items()]
        answer = self.server.connect(ADMIN + "SetLimits", {"changes": changes}, {"X-Scope-OrgID": tenant})
        return {limit["name"]: limit for limit in answer["limits"]}

    def ask(self, tenant, hours):
        end = now_ms()
        fields = [(1, ALLOCATED), (2, "{}"), (3, end - hours * HOUR), (4, end)]
        return self.server.call(QUERIER + "SelectMergeStacktraces", fields, [("x-scope-orgid", tenant)])

    def push(self, tenant, n_samples, **labels):
        profile = Profile([("alloc_space", "bytes")], time_ns=now_ms() * 1_000_000)
        for i in range(n_samples):
            profile.add(["main", "f%d" % i], [i + 1])
        labels = {"__name__": "memory", "service_name": "shop", **labels}
        return self.server.push(profile.encode(), labels, metadata=[("x-scope-orgid", tenant)])

    def refused(self, part, function, *arguments, **more):
        with self.assertRaises(RpcError) as caught:
            function(*arguments, **more)
        self.assertIn(part, caught.exception.message)

    def test_a_profile_over_the_size_limit_is_refused_for_its_size_at_any_rate(self):
        """Beyond the rate, too: a 429 would make the client send it again, for ever."""
        large = Profile([("alloc_space", "bytes")], time_ns=now_ms() * 1_000_000).add(["x" * 5_000_000], [1]).encode()
        noise = Profile([("alloc_space", "bytes")], time_ns=now_ms() * 1_000_000).add(["main"], [1])
        noise.add([os.urandom(700_000).hex()], [1])  # 2.8 MB: the burst is 2
        labels, metadata = {"__name__": "memory", "service_name": "shop"}, [("x-scope-orgid", "size")]
        for data in (large, gzip.decompress(large)):
            with self.assertRaises(RpcError) as caught:
                self.server.push(data, labels, metadata=metadata)
            self.assertEqual(caught.exception.code, "invalid_argument", caught.exception.message)
            self.assertIn("exceeds the size limit (max-profile-bytes", caught.exception.message)
            self.assertIn("max-profile-bytes", caught.exception.message)
        with self.assertRaises(RpcError) as caught:
            self.server.push(gzip.decompress(noise.encode()), labels, metadata=metadata)
        self.assertEqual(caught.exception.code, "resource_exhausted", caught.exception.message)
        self.assertIn("ingest-rate-bytes", caught.exception.message)

    def test_the_profile_of_pyroscope_refuses_as_it_does(self):
        self.ask("plain", 24)
        self.refused("the query time range exceeds the limit (max_query_length, actual: 1d1h, limit: 1d); the option is max-query-range", self.ask, "plain", 25)
        self.refused("exceeds the samples count limit (max-samples, actual: 51, limit: 50); raise it with --max-samples, or for one tenant with hearth admin limits", self.push, "plain", 51)
        self.refused("has 31 label names; limit 30", self.push, "plain", 1, **{"l%d" % i: "x" for i in range(29)})
        old = Profile([("alloc_space", "bytes")], time_ns=(now_ms() - 2 * HOUR) * 1_000_000).add(["main"], [1]).encode()
        self.refused(
            "is outside of ingestion window (profile timestamp: ", self.server.push, old,
            {"__name__": "memory", "service_name": "shop"}, metadata=[("x-scope-orgid", "plain")],
        )

    def test_a_tenant_has_limits_of_its_own_at_once(self):
        limits = self.set("big", max_query_range="30d", max_samples="60", max_label_names="40")
        self.assertEqual(limits["max-query-range"]["value"], "30d")
        self.assertEqual(limits["max-query-range"]["serverValue"], "1d")
        self.assertTrue(limits["max-query-range"]["isOwn"])
        self.assertFalse(limits["max-points"].get("isOwn", False))
        self.ask("big", 25)
        self.push("big", 60)
        self.push("big", 1, **{"l%d" % i: "x" for i in range(29)})
        self.refused("actual: 61, limit: 60", self.push, "big", 61)
        self.refused("max_query_length", self.ask, "other", 25)
        self.refused("limit: 50", self.push, "other", 51)
        self.set("big", max_query_range="default")
        self.refused("max_query_length", self.ask, "big", 25)

    def test_series_and_rates_are_bounded_by_tenant(self):
        self.set("few", max_series="2", ingest_rate_bytes="1k", ingest_burst_bytes="64k")
        for pod in ("a", "b"):
            self.push("few", 1, pod=pod)
        # The limit counts what the label index has seen; a question brings it up to date.
        self.server.label_names(now_ms() - HOUR, now_ms(), metadata=[("x-scope-orgid", "few")])
        self.refused("; raise it with --max-series, or for one tenant with hearth admin limits", self.push, "few", 1, pod="c")
        self.set("few", max_series="default", ingest_burst_bytes="10")
        self.refused("push rate limit", self.push, "few", 1, pod="a")
        self.push("many", 1, pod="a")

    def test_changes_are_all_or_none_and_checked(self):
        for name, value, part in (
            ("max_samples", "many", "whole number"), ("max_query_range", "5", "duration"),
            ("max_request_bytes", "1", "max-request-bytes"), ("nothing", "1", "nothing"),
        ):
            self.refused(part, self.set, "careful", max_points="7", **{name: value})
        answer = self.server.connect(ADMIN + "GetLimits", {}, {"X-Scope-OrgID": "careful"})
        self.assertEqual([limit["name"] for limit in answer["limits"] if not limit.get("help")], [])
        self.assertFalse(any(limit.get("isOwn") for limit in answer["limits"]))

    def hearth(self, *arguments):
        done = subprocess.run(
            [HEARTH, "--url", "http://127.0.0.1:%d" % self.server.port, "admin", "limits", *arguments],
            capture_output=True, text=True, timeout=60,
        )
        return done.returncode, done.stdout, done.stderr

    def test_the_client_shows_and_sets_them(self):
        code, out, _ = self.hearth("cli", "max-samples=77", "max-query-range=3d", "gauge-aggregation=mean")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^max-samples +77 +yes +50$")
        self.assertRegex(out, r"(?m)^max-query-range +3d +yes +1d$")
        self.assertRegex(out, r"(?m)^gauge-aggregation +mean +yes$")
        code, out, _ = self.hearth("cli", "max-samples=default")
        self.assertRegex(out, r"(?m)^max-samples +50 +no +50$")
        self.assertNotRegex(self.hearth("another")[1], r" yes( |$)")
        code, _, err = self.hearth("cli", "max-samples=x")
        self.assertEqual(code, 2)
        self.assertIn("whole number", err)

    def test_a_tiny_memory_limit_can_be_reset(self):
        self.set("tiny", max_query_memory_bytes="1")
        limits = self.set("tiny", max_query_memory_bytes="default")
        self.assertFalse(limits["max-query-memory-bytes"].get("isOwn", False))


if __name__ == "__main__":
    unittest.main()
