"""Answers do not depend on what background work has done: the same bytes from single profiles, from roll-ups and packed
totals, with late profiles, and while new series come."""

import random
import threading
import time
import unittest

import wire
from pprof import Profile
from questions import CPU, QUERIER, SAMPLES
from server import Server, eventually, now_ms

SPACE = "memory:inuse_space:bytes:space:bytes"
ALLOCATED = "memory:alloc_space:bytes:space:bytes"
SERVICES = ("api", "db", "web")
HOUR = 3_600_000
N_HOURS = 52


def cpu_profile(draw, time_ms, scale=10_000_000):
    profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=time_ms * 1_000_000, duration_ns=10**10)
    for _ in range(draw.randrange(1, 12)):
        stack = ["main"] + ["f%d" % draw.randrange(12) for _ in range(draw.randrange(1, 6))]
        count = draw.randrange(1, 50) if draw.random() < 0.4 else 1
        profile.add(stack, [count, count * scale])
    return profile.encode()


def heap_profile(draw, time_ms):
    types = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
    profile = Profile(types, period_type=("space", "bytes"), time_ns=time_ms * 1_000_000)
    for _ in range(draw.randrange(1, 8)):
        stack = ["main"] + ["m%d" % draw.randrange(9) for _ in range(draw.randrange(1, 5))]
        profile.add(stack, [draw.randrange(1, 9), draw.randrange(1, 99999), draw.randrange(3), draw.randrange(9999)])
    return profile.encode()


# All blocks, also of few profiles; test_one_answer.py leaves some of them out.
BUILD = ["--builder-interval=1s", "--rollup-grace=1s", "--compaction=false", "--rollup-min-profiles=0", "--rollup-min-profiles-1h=0"]


class Rollups(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.draw = random.Random(20261120)
        # Two days and more before the last whole hour: days, hours, ten minutes and edges.
        cls.end = now_ms() // HOUR * HOUR
        cls.begin = cls.end - N_HOURS * HOUR
        cls.server = Server("--builder=false")
        for service in SERVICES:
            for pod in range(3):
                cls.push_pod(service, "pod-%d" % pod)
        cls.questions = [cls.question() for _ in range(64)]
        cls.raw = [cls.ask(q) for q in cls.questions]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def push_pod(cls, service, pod):
        t = cls.begin + cls.draw.randrange(HOUR)
        while t < cls.end:
            labels = {"__name__": "process_cpu", "service_name": service, "pod": pod}
            cls.server.push(cpu_profile(cls.draw, t, 10_000_000 if pod != "pod-2" else 3), labels)
            if service != "db" and cls.draw.random() < 0.3:
                labels["__name__"] = "memory"
                cls.server.push(heap_profile(cls.draw, t), labels)
            t += cls.draw.randrange(8 * 60_000, 40 * 60_000)

    @classmethod
    def instant(cls):
        """On a boundary more often than not."""
        t = cls.draw.randrange(cls.begin - HOUR, cls.end + HOUR // 2)
        unit = cls.draw.choice([24 * HOUR, HOUR, HOUR, HOUR // 6, 1])
        return t // unit * unit - cls.draw.choice([0, 0, 1])

    @classmethod
    def question(cls):
        """(method, request bytes)"""
        draw = cls.draw
        a, b = sorted((cls.instant(), cls.instant() + 1))
        kind = draw.choice([CPU, CPU, SAMPLES, SPACE, ALLOCATED])
        service = draw.choice(SERVICES)
        selector = draw.choice([
            "{}", '{service_name="%s"}' % service, '{service_name="%s",pod="pod-1"}' % service,
            '{pod=~"pod-[02]"}', '{service_name=~"api|web"}', '{service_name="none"}',
        ])
        fields = [(1, kind), (2, selector), (3, a), (4, b)]
        what = draw.randrange(4)
        if what == 0:
            return QUERIER + "SelectMergeProfile", wire.encode(fields)
        if what == 1:
            call_site = [(7, [(1, [(1, "main")]), (1, [(1, "f3")])])] if draw.random() < 0.3 else []
            return QUERIER + "SelectMergeStacktraces", wire.encode(fields + call_site)
        group_by = [(5, name) for name in draw.choice([[], ["service_name"], ["pod", "service_name"]])]
        fields += group_by + [(6, float(draw.choice([15, 60, 1234.5, 3600, 86400])))]
        if draw.random() < 0.3:
            fields.append((7, 1))
        if draw.random() < 0.2:
            fields.append((8, [(1, [(1, "main")])]))
        return QUERIER + "SelectSeries", wire.encode(fields)

    @classmethod
    def ask(cls, question):
        return cls.server.grpc_bytes(*question)[0]

    def assert_same_answers(self, expected):
        for question, answer in zip(self.questions, expected):
            self.assertEqual(self.ask(question), answer, question)

    @classmethod
    def restart(cls, *options):
        directory = cls.server.directory
        cls.server.stop()
        cls.server = Server(*options, directory=directory)

    def built(self, table):
        return int(self.server.sql("SELECT count(*) FROM hearth_data." + table)[0][0])

    def legs(self):
        """{source: legs of all plans so far}"""
        return {dict(labels).get("source"): value for (name, labels), value in self.samples("hearth_query_legs_total")}

    def samples(self, name):
        for found, labels, value in metric_lines(self.server):
            if found == name:
                yield (found, labels), value

    def wait_until_built(self):
        def done():
            rows = self.server.sql(
                "SELECT count(*) FROM hearth_data.service s LEFT JOIN hearth_data.roll_state r USING (service_id)"
                " WHERE coalesce(r.built_to, 0) < %d::int8 * 1000000" % self.end
            )
            return rows == [["0"]]

        eventually(done, 120, 0.2, "building of everything")

    def test_1_roll_ups_answer_like_the_profiles_they_are_made_of(self):
        self.assertGreater(sum(len(a) > 20 for a in self.raw), 40)
        self.assertEqual(self.built("roll_1h"), 0)
        self.restart(*BUILD)
        self.wait_until_built()
        for table in ("roll_10m", "roll_1h", "roll_1d", "hour_totals"):
            self.assertGreater(self.built(table), 10, table)
        self.assert_same_answers(self.raw)
        legs = self.legs()
        for source in ("profile", "late", "totals", "roll_10m", "roll_1h", "roll_1d"):
            self.assertGreater(legs.get(source, 0), 0, source)

    def test_2_new_series_of_that_time_are_in_no_answer_twice_or_in_part(self):
        """Each new pod is late at once; what a whole service sums to only grows, by whole profiles of one sample."""
        ended, failures = threading.Event(), []
        selector, start, end = '{service_name="grow"}', self.begin, self.end - 1

        def ask():
            last = 0
            while not ended.is_set():
                answer = self.server.stacktraces(SAMPLES, selector, start, end)
                graph = wire.decode(answer[1][-1])
                total = wire.signed(graph.get(3, [0])[-1])
                if total < last or total % 7:
                    failures.append((last, total))
                last = total

        reader = threading.Thread(target=ask)
        reader.start()
        try:
            for k in range(60):
                t = self.begin + self.draw.randrange(N_HOURS) * HOUR + self.draw.randrange(HOUR)
                profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=t * 1_000_000)
                profile.add(["main", "g%d" % (k % 5)], [7, 70])
                labels = {"__name__": "process_cpu", "service_name": "grow", "pod": "new-%d" % (k // 3)}
                self.server.push(profile.encode(), labels)
                time.sleep(0.05)
        finally:
            ended.set()
            reader.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.server.flamegraph(SAMPLES, selector, start, end).total, 7 * 60)

        def folded():
            return self.server.sql("SELECT count(*) FROM hearth_data.profile_late") == [["0"]]

        eventually(folded, 60, 0.2, "folding of late profiles")
        self.assertEqual(self.server.flamegraph(SAMPLES, selector, start, end).total, 7 * 60)

    def test_3_late_profiles_count_before_and_after_they_are_folded(self):
        self.restart("--builder=false")
        for service in SERVICES:
            for k in range(30):
                t = self.begin + self.draw.randrange(N_HOURS * HOUR)
                labels = {"__name__": "process_cpu", "service_name": service, "pod": "pod-%d" % (k % 4)}
                self.server.push(cpu_profile(self.draw, t), labels)
        self.assertGreater(self.built("profile_late"), 80)
        late = [self.ask(q) for q in self.questions]
        self.assertNotEqual(late, self.raw)
        # What the profiles alone say.
        state = self.server.sql("SELECT service_id, built_to, generation FROM hearth_data.roll_state")
        self.server.sql("UPDATE hearth_data.roll_state SET built_to = 0, generation = generation + 1000")
        self.assert_same_answers(late)
        for service, built_to, generation in state:
            self.server.sql(
                "UPDATE hearth_data.roll_state SET built_to = %s, generation = %s + 2000 WHERE service_id = %s"
                % (built_to, generation, service)
            )
        self.assert_same_answers(late)
        self.restart(*BUILD)
        eventually(lambda: self.built("profile_late") == 0, 60, 0.2, "folding of late profiles")
        self.assert_same_answers(late)

    def test_4_profiles_deleted_by_retention_are_left_out_with_a_note(self):
        answer, headers = self.server.grpc_bytes(
            QUERIER + "SelectMergeStacktraces",
            wire.encode([(1, CPU), (2, "{}"), (3, now_ms() - 20 * 24 * HOUR - 123), (4, now_ms())]),
        )
        self.assertIn("the range begins at", str(headers))
        self.assertIn("retain-raw", str(headers))
        _, headers = self.server.grpc_bytes(
            QUERIER + "SelectMergeStacktraces", wire.encode([(1, CPU), (2, "{}"), (3, self.begin), (4, self.end)])
        )
        self.assertNotIn("retain-raw", str(headers))

    def test_5_closed_profiles_at_the_edges_are_read_once_until_others_are_added(self):
        start, end = self.begin + HOUR + 7 * 60_000 + 1, self.end - HOUR - 3 * 60_000 - 1
        selector = '{service_name="api", pod=~"pod-[01]"}'
        fields = [(1, SAMPLES), (2, selector), (3, start), (4, end)]
        question = QUERIER + "SelectMergeProfile", wire.encode(fields)

        def rows_of_asking():
            before = sum(value for _, value in self.samples("hearth_query_rows_total"))
            answer = self.ask(question)
            return answer, sum(value for _, value in self.samples("hearth_query_rows_total")) - before

        # Profiles in the first and the last minute of the range, which no block covers.
        total = self.server.flamegraph(SAMPLES, selector, start, end).total
        for time_ms in (start + 20_000, end - 20_000):
            profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=time_ms * 1_000_000)
            profile.add(["main", "edge"], [5, 50])
            labels = {"__name__": "process_cpu", "service_name": "api", "pod": "pod-1"}
            self.server.push(profile.encode(), labels)
        self.assertEqual(self.server.flamegraph(SAMPLES, selector, start, end).total, total + 10)
        eventually(lambda: self.built("profile_late") == 0, 60, 0.2, "folding of the late profiles")
        self.assertEqual(self.server.flamegraph(SAMPLES, selector, start, end).total, total + 10)

        self.restart("--builder=false")
        first, n_first = rows_of_asking()
        again, n_again = rows_of_asking()
        self.assertGreater(n_first, 0)
        self.assertEqual((n_again, again), (0, first))

        # Another range has edges of its own, and the same blocks.
        fields[2] = (3, start + 60_000)
        question = QUERIER + "SelectMergeProfile", wire.encode(fields)
        _, n_other = rows_of_asking()
        self.assertGreater(n_other, 0)
        self.assertLess(n_other, n_first)

    def test_6_the_tree_of_a_repeated_flame_graph_is_kept_until_others_are_added(self):
        start, end = self.begin + HOUR + 11 * 60_000, self.end - HOUR - 13 * 60_000
        selector = '{service_name="api", pod=~"pod-[012]"}'

        def ask(max_nodes):
            """The answer with its notes, and how many trees were found for it."""
            before = self.trees_found()
            fields = [(1, SAMPLES), (2, selector), (3, start), (4, end), (5, max_nodes)]
            answer, headers = self.server.grpc_bytes(QUERIER + "SelectMergeStacktraces", wire.encode(fields))
            return (answer, headers.get("hearth-note")), self.trees_found() - before

        # The first query keeps the sums, the second one the tree; another length is another tree.
        whole, n_found = ask(1000)
        self.assertEqual(n_found, 0)
        self.assertEqual([ask(1000) for _ in range(3)], [(whole, 0), (whole, 1), (whole, 1)])
        short, n_found = ask(4)
        self.assertEqual(n_found, 0)
        self.assertNotEqual(short, whole)
        self.assertIn("folded", str(short[1]))
        self.assertEqual([ask(4) for _ in range(2)], [(short, 1)] * 2)

        # A late profile counts at once, and after it has been folded into the blocks.
        total = self.server.flamegraph(SAMPLES, selector, start, end).total
        self.server.push(
            cpu_profile(self.draw, start + HOUR), {"__name__": "process_cpu", "service_name": "api", "pod": "pod-1"}
        )
        late = self.server.flamegraph(SAMPLES, selector, start, end).total
        self.assertGreater(late, total)
        answer, n_found = ask(1000)
        self.assertEqual(n_found, 0)
        self.restart(*BUILD)
        eventually(lambda: self.built("profile_late") == 0, 60, 0.2, "folding of a late profile")
        self.assertEqual([ask(1000)[0] for _ in range(4)], [answer] * 4)

    def trees_found(self):
        return sum(value for (_, labels), value in self.samples("hearth_query_cache_total") if labels == (("outcome", "tree"),))


def metric_lines(server):
    """(name, ((label, value), ..), value) of /metrics."""
    import re

    for line in server.http("GET", "/metrics")[2].decode().splitlines():
        found = re.fullmatch(r'(\w+)(?:\{(\w+)="([^"]*)"\})? (\S+)', line)
        if found:
            labels = ((found.group(2), found.group(3)),) if found.group(2) else ()
            yield found.group(1), labels, float(found.group(4))


if __name__ == "__main__":
    unittest.main()
