"""Tasks, policies and what they bring, where two of them meet: limits that are reached, times that lie far off, what is kept."""

import random
import threading
import unittest

import grpc

import agents
import server
import task_data
import tasks
from policy_agents import cause, meter, report_task, send_meters
from pprof import Profile

POLICIES = "hearth.v1.PolicyService/"
DAY = 86_400_000
INVALID = grpc.StatusCode.INVALID_ARGUMENT


class Edges(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = server.Cluster()
        cls.server = server.Server("--max-monitor-lines", "3", database_url=cls.cluster.url())

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cluster.stop()

    def test_a_policy_starts_profiling_while_a_created_task_runs(self):
        rover = agents.Rover(self.server)
        rover.report(agents.Process("busy", "pod-1", "app"))
        created = tasks.create(self.server, service="busy")
        causes = [cause("PROCESS_CPU", 80, 95)]
        started = report_task(self.server, "busy", "pod-1", "app", causes)
        self.assertNotEqual(started, created)
        self.assertEqual(tasks.get(self.server, started)["task"]["origin"], "TASK_ORIGIN_POLICY")

    def lines(self, service, names):
        set_ = [
            (1, meter("rover_con_p_process_cpu", 7, {"process_name": name}, service, "pod-1", server.now_ms()))
            for name in names
        ]
        send_meters(self.server, [set_])

    def test_lines_that_are_known_are_kept_when_there_may_be_no_more(self):
        self.lines("lined", ["a", "b", "c"])
        self.server.stop()  # it forgets what it knew
        self.server.start()
        self.lines("lined", ["a", "b", "c"])
        with self.assertRaises(grpc.RpcError) as caught:
            self.lines("lined", ["d"])
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        with self.assertRaises(grpc.RpcError) as caught:
            self.lines("full", ["a", "b", "c", "d"])
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_metrics_are_kept_however_old_where_nothing_is_too_old(self):
        open_ended = server.Server("--reject-older-than", "0", "--reject-newer-than", "0", database_url=self.cluster.url())
        point = meter("rover_con_p_process_cpu", 7, {"process_name": "a"}, "aged", "pod-1", server.now_ms() - 1000)
        send_meters(open_ended, [[(1, point)]])
        lines = open_ended.connect(POLICIES + "MonitorSeries", {"service": "aged"}).get("lines", [])
        self.assertEqual(len(lines), 1)
        open_ended.stop()

    def test_a_monitor_below_all_is_refused(self):
        with self.assertRaises(server.RpcError) as caught:
            self.server.connect(POLICIES + "MonitorSeries", {"service": "shop", "monitor": -1})
        self.assertEqual((caught.exception.code, caught.exception.message), ("invalid_argument", "monitor -1 is not known"))

    def test_a_range_that_ends_before_all_time_is_refused(self):
        with self.assertRaises(server.RpcError) as caught:
            self.server.connect(POLICIES + "MonitorSeries", {"service": "shop", "endMs": -(2**63)})
        self.assertEqual(caught.exception.code, "invalid_argument")

    def test_an_imported_task_is_as_old_as_its_import(self):
        ids = [tasks.create(self.server, service="old-%d" % i) for i in range(2)]
        long_ago = server.now_ms() - 30 * DAY
        self.server.sql("UPDATE hearth_data.task SET start_at = %d WHERE task_id = ANY ('{%s}')" % (long_ago, ",".join(ids)))
        self.server.sql(
            "UPDATE hearth_data.task SET origin = CASE WHEN task_id = '%s' THEN 3 ELSE 1 END, created_at = CASE WHEN"
            " task_id = '%s' THEN created_at ELSE %d END WHERE task_id = ANY ('{%s}')"
            % (ids[0], ids[0], long_ago, ",".join(ids))
        )
        self.server.stop()
        self.server.start()

        def gone():
            return [row[0] for row in self.server.sql("SELECT task_id FROM hearth_data.task")].count(ids[1]) == 0

        server.eventually(gone, what="the expiry of a task")
        self.assertEqual(tasks.get(self.server, ids[0])["task"]["taskId"], ids[0])

    def test_a_run_that_would_begin_in_the_far_future_is_refused(self):
        now = server.now_ms()
        for start in (now + 30 * DAY, 2**63 - 1):
            message = task_data.on_cpu((1, 2), 3, "a", "b", task_data.metadata("t-far", "p-far", start, now))
            with self.assertRaises(grpc.RpcError) as caught:
                task_data.collect(self.server, [message])
            self.assertEqual((caught.exception.code(), caught.exception.details()[:18]), (INVALID, "profilingStartTime"))
        self.assertEqual(self.server.sql("SELECT count(*) FROM hearth_data.task_schedule WHERE task_id = 't-far'"), [["0"]])

    def test_an_instance_that_polled_before_its_registration_counts_once_it_is_registered(self):
        program = agents.Instance(self.server, "fresh", "pod-1")
        self.assertEqual(program.query_tasks(agents.Instance.PPROF), [])  # no such service yet
        program.report()
        self.assertEqual(program.query_tasks(agents.Instance.PPROF), [])
        task = tasks.create(self.server, "PPROF", service="fresh", instances=["pod-2"], events=["cpu"])
        state, reason = tasks.state(self.server, task)
        self.assertEqual((state, "instances that ask: pod-1" in reason), ("NO_PROCESS_MATCHES", True), reason)

    def test_a_thread_snapshot_of_no_real_time_is_refused(self):
        task = tasks.create(self.server, "TRACE", service="timeless")
        program = agents.Instance(self.server, "timeless", "pod-1")
        program.report()
        for at in (0, 2**63 - 1):
            snapshot = [(1, task), (2, "segment"), (3, at), (4, 0), (5, [(1, "main")])]
            with self.assertRaises(server.RpcError) as caught:
                program.collect(agents.Instance.SNAPSHOTS, [snapshot])
            self.assertEqual(caught.exception.code, "invalid_argument")

    def test_two_calls_that_keep_a_task_alive_at_once_are_answered_its_new_end(self):
        agents.Rover(self.server).report(agents.Process("kept", "pod-1", "app"))
        task = tasks.create(self.server, "NETWORK", service="kept", instance="pod-1")
        self.server.sql("UPDATE hearth_data.task SET start_at = start_at - 570000 WHERE task_id = '%s'" % task)
        other, answers = server.Session(self.cluster.url()), []
        keep = lambda: answers.append(self.server.connect(tasks.TASKS + "KeepAliveTask", {"taskId": task})["task"])
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%SET duration%'"
        try:
            other.run("BEGIN; UPDATE hearth_data.task SET duration = duration + 600000 WHERE task_id = '%s'" % task)
            thread = threading.Thread(target=keep)
            thread.start()
            server.eventually(lambda: self.server.sql(waits), what="the second call")
            other.run("COMMIT")
            thread.join()
        finally:
            other.close()
        self.assertEqual([a["durationMs"] for a in answers], ["1200000"])

    def test_the_id_of_a_traced_request_may_be_long(self):
        p = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=server.now_ms() * 1_000_000, duration_ns=10**9)
        noise = "".join(random.choice("0123456789abcdefghijklmnopqrstuvwxyz") for _ in range(20_000))
        p.add(["main", "handle"], [3, 30], labels={"segment_id": noise})
        p.add(["main", "handle"], [3, 30], labels={"segment_id": "short"})
        content = p.encode()
        program = agents.Instance(self.server, "long", "pod-1")
        program.report()
        task = tasks.create(self.server, "PPROF", service="long", instances=["pod-1"], events=["cpu"])
        self.assertEqual(len(program.query_tasks(agents.Instance.PPROF)), 1)
        status = task_data.upload(self.server, task_data.PPROF, "long", "pod-1", task, content)
        self.assertEqual(status, 0)
        rows = self.server.sql("SELECT segment_id FROM hearth_data.task_go_segment")
        self.assertEqual(rows, [["short"]])


if __name__ == "__main__":
    unittest.main()
