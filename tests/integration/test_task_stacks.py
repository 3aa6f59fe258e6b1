"""Stack traces that agents send for tasks: kept once however often they come, the same in AnalyzeStacks and in the ordinary
queries; bad input; two servers; a server that is killed in the midst of a stream."""

import itertools
import threading
import time
import unittest

import grpc

import server
import task_data as agent
import wire
from agents import Process, Rover
from pprof import Decoded

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SAMPLES = "process_cpu:samples:count:cpu:nanoseconds"
OFF = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds"
SWITCHES = "off_cpu:switches:count:off_cpu:nanoseconds"
PERIOD = 9_000_000
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def analyze(at, schedules, **more):
    answer = at.connect(agent.TASKS + "AnalyzeStacks", {"scheduleIds": schedules, **more})
    return agent.trees(answer), answer


def merged(at, profile_type, selector, start, end):
    """{root-first names: value} of the ordinary query."""
    found = at.merge_pprof(profile_type, selector, start, end)
    by_lines = Decoded(found).by_stack(0) if found else {}
    out = {}
    for lines, value in by_lines.items():
        key = tuple(line[0] for line in reversed(lines))
        out[key] = out.get(key, 0) + value
    return out


class Case(unittest.TestCase):
    numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        number = next(self.numbers)
        self.service = "service-%d" % number
        self.task = "task-%d" % number
        self.now = server.now_ms()
        self.start = self.now - 60_000
        self.process = self.report(self.service, "pod-1", "app")

    def report(self, service, instance, process):
        """A process, as an agent reports it."""
        Rover(self.server).report(Process(service, instance, process))
        return agent.process_id(service, instance, process)

    def meta(self, at, task=None, process=None):
        return agent.metadata(task or self.task, process or self.process, self.start, at)

    def schedule(self, task=None, process=None):
        return agent.schedule_id(task or self.task, process or self.process, self.start)

    def selector(self):
        return '{service_name="%s"}' % self.service

    def assert_error(self, messages, code, part):
        with self.assertRaises(grpc.RpcError) as caught:
            agent.collect(self.server, messages)
        self.assertEqual((caught.exception.code(), part in caught.exception.details()), (code, True), caught.exception.details())

    def ordinary(self, kind, at=None):
        return merged(at or self.server, kind, self.selector(), self.start - 1000, self.now + 60_000)


class Taking(Case):
    def test_values_beyond_64_bits_are_stored_nowhere(self):
        meta = self.meta(self.now)
        off = [agent.off_cpu((1, i), 1, 2**62, user="main-wait", task=meta if i == 0 else None) for i in range(2)]
        on = [agent.on_cpu((1, i), 2**31 - 1, user="main-run", task=meta if i == 0 else None) for i in range(500)]
        for messages in (off, on):
            self.assert_error(messages, INVALID, "64 bits")
        self.assertEqual(self.server.connect(agent.TASKS + "ListSchedules", {"taskId": self.task}), {})

    def test_on_cpu_results_are_read_back_from_both_sides(self):
        first, second = self.now - 5000, self.now
        agent.collect(
            self.server,
            [
                agent.on_cpu((1, 2), 3, "sys_read-vfs_read", "main-read", self.meta(first)),
                agent.on_cpu((0, 3), 5, user="main-spin"),
                agent.on_cpu((0, 4), 1, user="main-spin"),  # the same frames under another number
                agent.on_cpu((9, 0), 2, kernel="main"),
                agent.on_cpu((0, 3), 7, user="main-spin", task=self.meta(second)),
            ],
        )
        found, answer = analyze(self.server, [self.schedule()])
        user = lambda *symbols: tuple((s, False) for s in symbols)
        expected = {
            user("main", "read") + (("sys_read", True), ("vfs_read", True)): 3,
            user("main", "spin"): 13,
            (("main", True),): 2,
        }
        self.assertEqual(found, expected)
        self.assertEqual((answer["unit"], answer.get("tip", "")), ("dumps", ""))
        self.assertEqual([t["elements"][0]["total"] for t in answer["trees"]], ["16", "2"])
        self.assertEqual(self.ordinary(SAMPLES), agent.names(expected))
        self.assertEqual(self.ordinary(CPU), {k: v * PERIOD for k, v in agent.names(expected).items()})
        # Both ends of a range count; overlapping ranges count once.
        ranges = lambda *pairs: {"ranges": [{"startMs": a, "endMs": b} for a, b in pairs]}
        self.assertEqual(sum(analyze(self.server, [self.schedule()], **ranges((first, first)))[0].values()), 11)
        self.assertEqual(sum(analyze(self.server, [self.schedule()], **ranges((first + 1, second)))[0].values()), 7)
        both = ranges((first, second), (first, first), (second, second + 9))
        self.assertEqual(analyze(self.server, [self.schedule()], **both)[0], expected)
        none, answer = analyze(self.server, [self.schedule()], **ranges((1, 2)))
        self.assertEqual((none, "no stack traces in these ranges" in answer["tip"]), ({}, True))

    def test_schedules_and_labels_are_listed(self):
        for at in (self.now - 10_000, self.now - 5000):
            agent.collect(self.server, [agent.on_cpu((0, 1), 1, user="main", task=self.meta(at))])
        found = self.server.connect(agent.TASKS + "ListSchedules", {"taskId": self.task})["schedules"]
        profile_ids = found[0].pop("profileIds")
        self.assertEqual(len(set(profile_ids)), 2)
        self.assertEqual(
            found,
            [
                {
                    "scheduleId": self.schedule(), "taskId": self.task, "processId": self.process, "process": "app",
                    "instance": "pod-1", "startMs": str(self.start), "endMs": str(self.now - 5000),
                }
            ],
        )
        # The profiles of a run are found by their ids, whatever else its series holds.
        agent.collect(self.server, [agent.on_cpu((0, 1), 4, user="main", task=self.meta(self.now, task="another"))])
        selection = {"profileType": SAMPLES, "labelSelector": self.selector(), "start": self.start, "end": self.now + 1000}
        total = lambda ids: self.server.connect("hearth.v1.QueryService/Merge", {"selection": {**selection, **ids}})["flamegraph"]["total"]
        self.assertEqual([total({}), total({"profileIds": profile_ids}), total({"profileIds": profile_ids[:1]})], ["6", "2", "1"])
        series = self.server.series(self.start, self.now + 1000, [self.selector()], ["service_name", "instance", "process_name"])
        self.assertIn((("instance", "pod-1"), ("process_name", "app"), ("service_name", self.service)), series)

    def test_kernel_and_program_are_libraries_of_their_own(self):
        agent.collect(self.server, [agent.on_cpu((1, 1), 4, "read", "main-read", self.meta(self.now))])
        selection = {"profileType": SAMPLES, "labelSelector": self.selector(), "start": self.start, "end": self.now + 1000}
        request = {"selection": selection, "kind": "TOP_KIND_MODULE"}
        rows = self.server.connect("hearth.v1.QueryService/Top", request)["rows"]
        found = {r["name"]: (r.get("self", "0"), r["total"]) for r in rows}
        self.assertEqual(found, {"[kernel]": ("4", "4"), "app": ("0", "4")})

    def test_off_cpu_stacks_are_weighted_by_switches_or_by_time(self):
        agent.collect(
            self.server,
            [
                agent.off_cpu((1, 2), 10, 70, "schedule", "main-lock", self.meta(self.now)),
                agent.off_cpu((0, 3), 1, 500, user="main-write"),
            ],
        )
        lock, write = ("main", "lock", "schedule"), ("main", "write")
        count, answer = analyze(self.server, [self.schedule()])
        self.assertEqual((agent.names(count), answer["unit"]), ({lock: 10, write: 1}, "switches"))
        by_time, answer = analyze(self.server, [self.schedule()], weight="STACK_WEIGHT_DURATION")
        self.assertEqual((agent.names(by_time), answer["unit"]), ({lock: 70, write: 500}, "nanoseconds"))
        self.assertEqual(self.ordinary(SWITCHES), {lock: 10, write: 1})
        self.assertEqual(self.ordinary(OFF), {lock: 70, write: 500})

    def test_repeated_data_counts_once(self):
        whole = [
            agent.on_cpu((0, i), i, user="main-f%d" % i, task=self.meta(self.now) if i == 1 else None) for i in range(1, 9)
        ]
        agent.collect(self.server, whole[:5])
        agent.collect(self.server, whole)
        agent.collect(self.server, whole + whole)
        expected = {("main", "f%d" % i): i for i in range(1, 9)}
        self.assertEqual(agent.names(analyze(self.server, [self.schedule()])[0]), expected)
        self.assertEqual(self.ordinary(SAMPLES), expected)
        found = self.server.metrics()
        self.assertGreater(found[("hearth_task_stacks_total", (("outcome", "repeated"),))], 0)

    def test_several_tasks_in_one_stream(self):
        other = self.report(self.service, "pod-2", "app")
        agent.collect(
            self.server,
            [
                agent.on_cpu((0, 1), 1, user="a", task=self.meta(self.now)),
                agent.on_cpu((0, 2), 2, user="b"),
                agent.on_cpu((0, 1), 4, user="a", task=self.meta(self.now, process=other)),
                agent.off_cpu((0, 1), 8, 9, user="a", task=self.meta(self.now, task=self.task + "-off")),
            ],
        )
        first, second = self.schedule(), self.schedule(process=other)
        self.assertEqual(agent.names(analyze(self.server, [first])[0]), {("a",): 1, ("b",): 2})
        self.assertEqual(agent.names(analyze(self.server, [second, first])[0]), {("a",): 5, ("b",): 2})
        off = self.schedule(task=self.task + "-off")
        self.assertEqual(agent.names(analyze(self.server, [off])[0]), {("a",): 8})
        with self.assertRaises(server.RpcError) as caught:
            analyze(self.server, [first, off])
        self.assertEqual(caught.exception.code, "invalid_argument")

    def test_an_empty_report_and_one_of_no_samples_are_accepted(self):
        self.assertEqual(agent.collect(self.server, []), b"")
        agent.collect(self.server, [agent.on_cpu((0, 1), 0, user="a", task=self.meta(self.now))])
        self.assertEqual(self.server.connect(agent.TASKS + "ListSchedules", {"taskId": self.task}), {})

    def test_unknown_processes_are_accepted_and_reported(self):
        unknown = agent.process_id("nobody", "nowhere", str(self.now))
        agent.collect(self.server, [agent.on_cpu((0, 1), 6, user="main", task=self.meta(self.now, process=unknown))])
        self.assertEqual(agent.names(analyze(self.server, [self.schedule(process=unknown)])[0]), {("main",): 6})
        selector = '{service_name="unknown_service", process_id="%s"}' % unknown
        self.assertEqual(merged(self.server, SAMPLES, selector, self.start, self.now + 1000), {("main",): 6})
        self.assertIn(unknown, self.server.log())

    def test_a_stream_that_stays_open_is_written_meanwhile(self):
        more = threading.Event()

        def messages():
            yield agent.on_cpu((0, 1), 1, user="main", task=self.meta(self.now))
            for i in range(2, 40):
                yield agent.on_cpu((0, i), 1, user="main-" + "x" * 40_000 + str(i))
            more.wait(60)

        call = self.server.channel.stream_unary("/" + agent.STACKS).future(messages(), timeout=90)
        try:
            written = lambda: self.server.connect(agent.TASKS + "ListSchedules", {"taskId": self.task})
            server.eventually(written, what="a chunk of an open stream")
            self.assertFalse(call.done())
        finally:
            more.set()
        call.result()
        self.assertEqual(sum(analyze(self.server, [self.schedule()])[0].values()), 39)
        self.assertEqual(sum(self.ordinary(SAMPLES).values()), 39)

    def test_bad_input_is_refused_whole(self):
        good = agent.on_cpu((0, 1), 1, user="main", task=self.meta(self.now))
        cases = [
            ([agent.on_cpu((0, 1), 1, user="main")], "before the metadata"),
            ([wire.encode([self.meta(self.now)])], "neither onCPU nor offCPU"),
            ([good, agent.on_cpu((0, 2), -1, user="main")], "negative"),
            ([good, agent.off_cpu((0, 2), 1, -1, user="main")], "negative"),
            ([good, wire.encode([(2, [(1, [(1, 7), (3, "main")]), (2, 1)])])], "stackType 7"),
            ([agent.on_cpu((0, 1), 1, user="a", task=agent.metadata("", self.process, 1, self.now))], "taskId"),
            ([agent.on_cpu((0, 1), 1, user="a", task=agent.metadata(self.task, "", 1, self.now))], "processId"),
            ([agent.on_cpu((0, 1), 1, user="a", task=agent.metadata("t" * 2000, self.process, 1, self.now))], "1024"),
            ([agent.on_cpu((0, 1), 1, user="a", task=self.meta(0))], "currentTime"),
            ([agent.on_cpu((0, 1), 1, user="a", task=self.meta(self.now + 3_600_000))], "reject-newer-than"),
            ([good, b"\xff\xff\xff"], ""),
        ]
        for messages, part in cases:
            with self.subTest(part=part):
                self.assert_error(messages, INVALID, part)
        self.assertEqual(self.server.connect(agent.TASKS + "ListSchedules", {"taskId": self.task}), {})
        self.assertEqual(self.ordinary(SAMPLES), {})

    def test_queries_that_make_no_sense_are_refused(self):
        agent.collect(self.server, [agent.on_cpu((0, 1), 1, user="main", task=self.meta(self.now))])
        cases = [
            ("ListSchedules", {}, "invalid_argument"),
            ("AnalyzeStacks", {}, "invalid_argument"),
            ("AnalyzeStacks", {"scheduleIds": ["0" * 64]}, "not_found"),
            ("AnalyzeStacks", {"scheduleIds": [self.schedule()], "weight": 9}, "invalid_argument"),
            ("AnalyzeStacks", {"scheduleIds": [self.schedule()], "ranges": [{"startMs": 2, "endMs": 1}]}, "invalid_argument"),
        ]
        for method, request, code in cases:
            with self.subTest(request=request), self.assertRaises(server.RpcError) as caught:
                self.server.connect(agent.TASKS + method, request)
            self.assertEqual(caught.exception.code, code)

    def test_cut_stacks_are_reported(self):
        deep = "-".join("f%d" % i for i in range(1200))
        agent.collect(self.server, [agent.on_cpu((0, 1), 2, user=deep, task=self.meta(self.now))])
        found, answer = analyze(self.server, [self.schedule()])
        self.assertEqual([(len(path), value) for path, value in found.items()], [(1000, 2)])
        self.assertIn("max-stack-depth", answer["tip"])
        self.assertEqual([(len(path), value) for path, value in self.ordinary(SAMPLES).items()], [(1000, 2)])


class Crashes(Case):
    """A second server of the same database, killed in the midst of streams; what it did not acknowledge is sent to the first."""

    def test_data_sent_again_after_kill_9_counts_once(self):
        second = server.Server(database_url=self.server.postgres_url())
        flushes = [self.now - 5000 * i for i in range(8)]

        def messages(at, pace=0.0):
            for i in range(60):
                time.sleep(pace)
                yield agent.on_cpu((i, i), i + 1, "k%d" % (i % 7), "main-f%d" % i, self.meta(at) if i == 0 else None)

        def deliver(at):
            try:
                agent.collect(second, messages(at, 0.01))
                return True
            except grpc.RpcError:
                return False

        agent.collect(second, messages(flushes[0]))
        threads = [threading.Thread(target=deliver, args=(at,)) for at in flushes[:6]]
        for thread in threads:
            thread.start()
        stored = lambda: self.server.sql("SELECT count(*) FROM hearth_data.task_stack_chunk")[0][0] != "0"
        server.eventually(stored, what="a chunk")
        time.sleep(0.55)  # about when the streams end: some are written, some are not
        second.kill9()
        for thread in threads:
            thread.join()
        for at in flushes:
            agent.collect(self.server, messages(at))
        expected = {("main", "f%d" % i, "k%d" % (i % 7)): 8 * (i + 1) for i in range(60)}
        self.assertEqual(agent.names(analyze(self.server, [self.schedule()])[0]), expected)
        self.assertEqual(self.ordinary(SAMPLES), expected)

    def test_files_left_by_a_lost_server_become_profiles_without_a_repeat(self):
        second = server.Server(database_url=self.server.postgres_url())
        flush = self.now - 120_000
        self.start = flush - 60_000
        session = server.Session(self.server.postgres_url())
        try:
            session.run("BEGIN; LOCK TABLE hearth_data.push_id")  # chunks are written, no profiles are

            def deliver():
                with self.assertRaises(grpc.RpcError):
                    agent.collect(second, [agent.on_cpu((1, 2), 3, user="main-left", task=self.meta(flush))])

            thread = threading.Thread(target=deliver)
            thread.start()
            left = "SELECT count(*) FROM hearth_data.task_stack_chunk WHERE NOT is_pushed"
            server.eventually(lambda: self.server.sql(left) == [["1"]], what="a chunk")
            second.kill9()
            thread.join()
        finally:
            session.close()
        pushed = lambda: self.server.sql(left) == [["0"]]
        server.eventually(pushed, 90, 0.5, what="the profile of what was left")
        self.assertEqual(self.ordinary(SAMPLES), {("main", "left"): 3})
        self.assertEqual(agent.names(analyze(self.server, [self.schedule()])[0]), {("main", "left"): 3})

    def test_two_servers_get_one_flush_at_once(self):
        second = server.Server(database_url=self.server.postgres_url())
        try:
            whole = [
                agent.on_cpu((0, i), i, user="main-f%d" % i, task=self.meta(self.now) if i == 1 else None)
                for i in range(1, 30)
            ]
            server.in_threads([lambda at=at: agent.collect(at, whole) for at in (self.server, second) * 4])
            expected = {("main", "f%d" % i): i for i in range(1, 30)}
            for at in (self.server, second):
                self.assertEqual(agent.names(analyze(at, [self.schedule()])[0]), expected)
                self.assertEqual(self.ordinary(SAMPLES, at), expected)
        finally:
            second.stop()


if __name__ == "__main__":
    unittest.main()
