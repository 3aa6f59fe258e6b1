"""Policies: set, told to agents, followed by them, dry-run over what they reported."""

import json
import queue
import subprocess
import threading
import unittest

import grpc

import agents
import policy_agents
import server
import task_data
from policy_agents import PolicyRover, Watched, meter, query_policies, report_task, send_meters
from pprof import Decoded

POLICIES = "hearth.v1.PolicyService/"
CPU = {"monitor": "MONITOR_KIND_PROCESS_CPU", "threshold": "80", "period_seconds": 10, "count": 3}


def policy(service, *items, kind="TASK_KIND_ON_CPU", **more):
    return {"service": service, "targets": [{"kind": kind, "check_items": list(items) or [CPU]}], **more}


class Policies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = server.Cluster()
        cls.server = server.Server("--max-policy-versions", "5", database_url=cls.cluster.url())
        cls.other = server.Server(database_url=cls.cluster.url())
        cls.n = 0

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.other.stop()
        cls.cluster.stop()

    def setUp(self):
        Policies.n += 1
        self.service = "shop-%d" % Policies.n

    def ask(self, method, message, to=None):
        return (to or self.server).connect(POLICIES + method, message)

    def set(self, *items, to=None, **more):
        named = {k: more.pop(k) for k in ("kind", "modified_by") if k in more}
        return self.ask("SetPolicy", {"policy": policy(self.service, *items, **named), **more}, to)

    def refused(self, method, message, code="invalid_argument"):
        with self.assertRaises(server.RpcError) as caught:
            self.ask(method, message)
        self.assertEqual(caught.exception.code, code)
        return caught.exception.message

    # ---- what agents are told ----

    def test_agents_get_only_the_differences(self):
        self.assertEqual(query_policies(self.server, {self.service: ""}), [])
        uuid = self.set()["policy"]["uuid"]
        armed = {
            "ServiceName": self.service,
            "UUID": uuid,
            "Profiling": {"ON_CPU": {"PROCESS_CPU": {"Threshold": "80", "Period": 10, "Count": 3}}},
        }
        for to in (self.server, self.other):
            self.assertEqual(query_policies(to, {self.service: ""}), [armed])
            self.assertEqual(query_policies(to, {self.service: "old"}), [armed])
            # A second agent of the service is told as the first was, as often as it asks.
            self.assertEqual(query_policies(to, {self.service: "", "nobody": ""}), [armed])
            self.assertEqual(query_policies(to, {self.service: uuid, "nobody": ""}), [])
        self.assertEqual(self.server.call(policy_agents.QUERY_POLICIES, []), {})
        # Disarmed is not the same as deleted.
        empty = self.ask("SetPolicy", {"policy": {"service": self.service}})["policy"]
        self.assertEqual(
            query_policies(self.other, {self.service: uuid}),
            [{"ServiceName": self.service, "UUID": empty["uuid"], "Profiling": {}}],
        )
        self.ask("DeletePolicy", {"service": self.service, "modified_by": "ada"})
        self.assertEqual(query_policies(self.other, {self.service: uuid}), [{"ServiceName": self.service, "UUID": ""}])
        self.assertEqual(query_policies(self.other, {self.service: ""}), [])

    def test_uris_and_observed_traffic_are_sent_as_agents_read_them(self):
        rate = {"monitor": "MONITOR_KIND_HTTP_ERROR_RATE", "threshold": "5", "period_seconds": 10, "count": 1}
        time = {"monitor": "MONITOR_KIND_HTTP_AVG_RESPONSE_TIME", "threshold": "500", "period_seconds": 9, "count": 2}
        items = [{**time, "uri_regex": "^/api/.*"}, {**rate, "uri_paths": ["/b", "/a"]}]
        set_uuid = self.set(*items, kind="TASK_KIND_NETWORK")["policy"]["uuid"]
        (entry,) = query_policies(self.server, {self.service: ""})
        self.assertEqual(
            entry["Profiling"],
            {
                "NETWORK": {
                    "HTTP_ERROR_RATE": {"Threshold": "5", "Period": 10, "Count": 1, "URIList": ["/b", "/a"]},
                    "HTTP_AVG_RESPONSE_TIME": {"Threshold": "500", "Period": 9, "Count": 2, "URIRegex": "^/api/.*"},
                }
            },
        )
        observing = self.set(*items, kind="TASK_KIND_NETWORK", observe=True)["policy"]
        self.assertTrue(observing["isObserving"])
        self.assertNotEqual(observing["uuid"], set_uuid)
        (entry,) = query_policies(self.server, {self.service: set_uuid})
        self.assertEqual(entry["UUID"], observing["uuid"])
        for item in entry["Profiling"]["NETWORK"].values():
            # Agents read thresholds of CPU and threads as 32-bit integers.
            self.assertEqual(item["Threshold"], "2147483647")
        # What was meant is kept.
        kept = self.ask("GetPolicy", {"service": self.service})["policy"]["targets"][0]["checkItems"]
        self.assertEqual([item["threshold"] for item in kept], ["5", "500"])

    # ---- management ----

    def test_versions_prevent_lost_updates_and_the_history_lists_changes(self):
        first = self.set(modified_by="ada")["policy"]
        self.assertEqual((first["version"], first["modifiedBy"]), ("1", "ada"))
        again = self.set(modified_by="bob")["policy"]
        self.assertEqual((again["version"], again["modifiedBy"]), ("1", "ada"), "nothing has changed")
        louder = {**CPU, "threshold": "90"}
        message = {"policy": policy(self.service, louder, modified_by="bob"), "expected_version": "0"}
        self.assertIn("version 1, not 0", self.refused("SetPolicy", message, "aborted"))
        self.assertIn("version 1, not 0", self.refused("SetPolicy", {**message, "validate_only": True}, "aborted"))
        message["expected_version"] = "1"
        dry = self.ask("SetPolicy", {**message, "validate_only": True})
        self.assertEqual(self.ask("GetPolicy", {"service": self.service})["policy"], first)
        second = self.ask("SetPolicy", message, self.other)["policy"]
        self.assertEqual((second["version"], second["uuid"]), ("2", dry["policy"]["uuid"]))
        self.ask("DeletePolicy", {"service": self.service, "modified_by": "eve"})
        self.refused("DeletePolicy", {"service": self.service}, "not_found")
        self.refused("GetPolicy", {"service": self.service}, "not_found")
        self.set(expected_version="0")
        history = self.ask("PolicyHistory", {"service": self.service})["versions"]
        self.assertEqual([v["version"] for v in history], ["4", "3", "2", "1"])
        self.assertEqual([v.get("modifiedBy", "") for v in history], ["", "eve", "bob", "ada"])
        self.assertNotIn("targets", history[1])
        self.assertEqual(history[2]["targets"], second["targets"])
        for threshold in range(10, 20):
            self.set({**CPU, "threshold": str(threshold)})
        history = self.ask("PolicyHistory", {"service": self.service})["versions"]
        self.assertEqual([v["version"] for v in history], ["14", "13", "12", "11", "10"])

    def test_policies_are_listed_in_bulk(self):
        names = [self.service + c for c in "cab"]
        for name in names:
            self.ask("SetPolicy", {"policy": policy(name)})
        found = [p["policy"]["service"] for p in self.ask("ListPolicies", {}, self.other)["policies"]]
        self.assertEqual([n for n in found if n.startswith(self.service)], sorted(names))
        self.assertEqual(found, sorted(found))

    def test_a_damaged_policy_is_an_error_and_the_server_stays(self):
        item = '{"monitor": 1}'
        kinds = ['{"kind": %d, "items": []}' % (1 + i % 3) for i in range(8)]
        items = ['{"kind": 1, "items": [%s]}' % ", ".join([item] * 8)]
        for targets in (kinds, items):
            self.set()
            server.sql(
                self.cluster.url(),
                "UPDATE hearth_data.policy SET targets = '[%s]' WHERE service_id ="
                " (SELECT service_id FROM hearth_data.service WHERE name = '%s')" % (", ".join(targets), self.service),
            )
            with self.assertRaises(server.RpcError) as caught:
                self.ask("GetPolicy", {"service": self.service})
            self.assertIn("is damaged", caught.exception.message)
            # It can be replaced.
            self.ask("DeletePolicy", {"service": self.service})
            stored = self.set()["policy"]
            self.assertEqual(self.ask("GetPolicy", {"service": self.service})["policy"]["uuid"], stored["uuid"])

    def test_one_of_several_changes_of_the_same_version_succeeds(self):
        self.set()
        outcomes = []

        def change(to, threshold):
            message = {"policy": policy(self.service, {**CPU, "threshold": str(threshold)}), "expected_version": "1"}
            try:
                outcomes.append(self.ask("SetPolicy", message, to)["policy"]["version"])
            except server.RpcError as error:
                outcomes.append(error.code)

        threads = [threading.Thread(target=change, args=((self.server, self.other)[i % 2], 10 + i)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(outcomes), ["2"] + ["aborted"] * 5)

    def test_errors_name_their_check_item(self):
        def complaint(*items, kind="TASK_KIND_ON_CPU", service=self.service):
            return self.refused("SetPolicy", {"policy": policy(service, *items, kind=kind)})

        self.assertEqual(complaint(CPU, service=""), "the service id cannot be empty")
        self.assertEqual(complaint(CPU, CPU), "contains multiple same monitor type PROCESS_CPU in ON_CPU")
        self.assertEqual(
            complaint({**CPU, "threshold": "0"}),
            "check PROCESS_CPU in ON_CPU error: the process CPU percent should be in (0-100]",
        )
        self.assertIn("max-policy-period", complaint({**CPU, "period_seconds": 3601}))
        regex = {**CPU, "monitor": "MONITOR_KIND_HTTP_ERROR_RATE", "uri_regex": "("}
        self.assertIn("check HTTP_ERROR_RATE in NETWORK error: the URI regex", complaint(regex, kind="TASK_KIND_NETWORK"))
        self.assertIn("ON_CPU, OFF_CPU or NETWORK", complaint(CPU, kind="TASK_KIND_PPROF"))
        self.refused("GetPolicy", {"service": self.service}, "not_found")

    def test_tenants_have_their_own_policies(self):
        to = server.Server("--multitenancy", database_url=self.cluster.url())
        try:
            message = {"policy": policy(self.service)}
            to.connect(POLICIES + "SetPolicy", message, {"X-Scope-OrgID": "a"})
            self.assertEqual(to.connect(POLICIES + "ListPolicies", {}, {"X-Scope-OrgID": "b"}), {})
            self.assertEqual(len(to.connect(POLICIES + "ListPolicies", {}, {"X-Scope-OrgID": "a"})["policies"]), 1)
        finally:
            to.stop()

    # ---- metrics ----

    def series(self, to=None, **more):
        answer = self.ask("MonitorSeries", {"service": self.service, **more}, to)
        return {
            (line["monitor"], line["instance"], line["process"], line.get("uri", "")): [
                (int(p["atMs"]), p.get("value", 0)) for p in line["points"]
            ]
            for line in answer.get("lines", [])
        }

    def test_metrics_are_kept_as_they_were_sent_by_any_server(self):
        at = server.now_ms() - 120_000
        labels = {"process_name": "app", "layer": "OS_LINUX"}
        http = {**labels, "uri": "global"}

        def one(i):
            at_ms = at + i * 5000
            head = (self.service, "pod-1", at_ms)
            return [
                (1, meter("rover_con_p_process_cpu", 12.5 + i, labels, *head)),
                (1, meter("rover_con_p_system_load", 0.25, labels, *head)),
                # HTTP: a value for each second with requests, all of one time; the header need not be said again.
                (1, meter("rover_con_p_http_error_rate", 100.0, http)),
                (1, meter("rover_con_p_http_error_rate", 33.3, http)),
                (1, meter("jvm_memory_used", 1.0, {})),
            ]

        for i in range(12):
            self.assertEqual(send_meters((self.server, self.other)[i % 2], [one(i)]), b"")
        found = self.series(self.other)
        key = ("pod-1", "app")
        cpu = [(at + i * 5000, 12.5 + i) for i in range(12)]
        self.assertEqual(found.pop(("MONITOR_KIND_PROCESS_CPU", *key, "")), cpu)
        self.assertEqual(found.pop(("MONITOR_KIND_SYSTEM_LOAD", *key, "")), [(t, 0.25) for t, _ in cpu])
        rate = found.pop(("MONITOR_KIND_HTTP_ERROR_RATE", *key, "global"))
        self.assertEqual(rate, [(t, v) for t, _ in cpu for v in (100.0, 33.3)])
        self.assertEqual(found, {})
        only = self.series(monitor="MONITOR_KIND_PROCESS_CPU", start_ms=cpu[3][0], end_ms=cpu[5][0])
        self.assertEqual(list(only.values()), [cpu[3:6]])
        self.assertEqual(self.series(instance="pod-2"), {})
        means = self.series(monitor="MONITOR_KIND_PROCESS_CPU", step_seconds=600)
        ((_, values),) = means.items()
        self.assertAlmostEqual(sum(v for _, v in values) / len(values), 18, delta=6)
        self.assertTrue(all(t % 600_000 == 0 for t, _ in values))
        least, most = ([v for values in self.series(monitor="MONITOR_KIND_PROCESS_CPU", step_seconds=600,
                                                    step_value="MONITOR_STEP_VALUE_" + name).values() for _, v in values]
                       for name in ("LOWEST", "HIGHEST"))
        self.assertEqual((min(least), max(most)), (12.5, 23.5))
        self.assertTrue(all(low < mean < high for low, (_, mean), high in zip(least, values, most) if low < high))
        none = self.ask("MonitorSeries", {"service": "nobody"})
        self.assertIn("no metrics", none["notes"][0])
        metrics = self.server.metrics()
        self.assertGreaterEqual(metrics["hearth_agent_meters_total", (("kind", "monitors"),)], 24)
        self.assertGreaterEqual(metrics["hearth_agent_meters_total", (("kind", "dropped"),)], 6)

    def test_meters_of_a_stream_take_the_head_of_its_first_message(self):
        at = server.now_ms() - 5000
        labels = {"process_name": "app"}
        stream = [
            meter("rover_con_p_process_cpu", 1.0, labels, self.service, "pod-1", at),
            meter("rover_con_p_process_thread_count", 7.0, labels),
        ]
        send_meters(self.server, stream, policy_agents.COLLECT)
        self.assertEqual(sorted(self.series().values()), [[(at, 1.0)], [(at, 7.0)]])
        self.assertEqual(send_meters(self.server, [], policy_agents.COLLECT), b"")
        self.assertEqual(send_meters(self.server, []), b"")

    def test_impossible_meters_are_refused_with_all_of_their_set(self):
        at = server.now_ms()
        good = meter("rover_con_p_process_cpu", 1.0, {"process_name": "app"}, self.service, "pod-1", at)
        bad = [
            meter("rover_con_p_process_cpu", float("nan"), {"process_name": "app"}),
            meter("rover_con_p_process_cpu", float("inf"), {"process_name": "app"}),
            meter("rover_con_p_process_cpu", 1.0, {}),
            meter("rover_con_p_process_cpu", 1.0, {"process_name": "app", "uri": "/a"}),
            meter("rover_con_p_http_error_rate", 1.0, {"process_name": "app"}),
            meter("rover_con_p_process_cpu", 1.0, {"process_name": "a" * 3000}),
        ]
        for wrong in bad:
            with self.assertRaises(grpc.RpcError) as caught:
                send_meters(self.server, [[(1, good), (1, wrong)]])
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT, wrong)
        self.assertEqual(self.series(), {})
        # Of an instance whose name is too long.
        named = meter("rover_con_p_process_cpu", 1.0, {"process_name": "app"}, self.service, "i" * 1025, at)
        with self.assertRaises(grpc.RpcError) as caught:
            send_meters(self.server, [[(1, named)]])
        self.assertIn("serviceInstance of a set of meters has 1025 bytes", caught.exception.details())
        self.assertEqual(self.series(), {})
        # Of a time that is not kept: taken, and dropped.
        old = meter("rover_con_p_process_cpu", 1.0, {"process_name": "app"}, self.service, "pod-1", 1000)
        self.assertEqual(send_meters(self.server, [[(1, old)]]), b"")
        self.assertEqual(self.series(start_ms="1", end_ms=str(at)), {})

    # ---- what policies start ----

    def test_a_report_becomes_a_task_with_its_causes(self):
        task_id = report_task(
            self.server, self.service, "pod-1", "app", [policy_agents.cause("PROCESS_CPU", 10, 97.526)], duration=60
        )
        self.assertTrue(task_id)
        causes, sampling, origin, duration = self.cluster_row(task_id)
        self.assertEqual((origin, duration, sampling), (2, 60_000, None))
        self.assertEqual(
            causes,
            [
                {
                    "monitor": "PROCESS_CPU", "uri_regex": "", "uri_path": "", "threshold": 10, "current": 97.526,
                    "message": "PROCESS_CPU: current 97.52% >= threshold 10.00%",
                }
            ],
        )
        # The answer was lost: the agent reports again. Another target is another task.
        again = report_task(self.other, self.service, "pod-1", "app", [policy_agents.cause("PROCESS_CPU", 10, 98.0)])
        self.assertEqual(again, task_id)
        other = report_task(self.server, self.service, "pod-1", "app", [], "OFF_CPU")
        self.assertNotEqual(other, task_id)
        network = report_task(
            self.server, self.service, "pod-1", "app",
            [policy_agents.cause("HTTP_AVG_RESPONSE_TIME", 500, 812.345, "/buy", False)], "NETWORK", uris=["/buy"],
        )
        causes, sampling, _, _ = self.cluster_row(network)
        self.assertEqual(causes[0]["message"], "HTTP_AVG_RESPONSE_TIME: current 812.34ms >= threshold 500.00ms on /buy")
        self.assertEqual(
            sampling,
            [
                {
                    "URIRegex": "/buy", "MinDuration": 0, "When4xx": True, "When5xx": True,
                    "Settings": {"RequireCompleteRequest": True, "RequireCompleteResponse": True},
                }
            ],
        )

    def cluster_row(self, task_id):
        ((row,),) = server.sql(
            self.cluster.url(),
            "SELECT json_build_array(causes, sampling, origin, duration)::text FROM hearth_data.task WHERE task_id = '%s'"
            % task_id,
        )
        return json.loads(row)

    def test_an_impossible_report_is_an_error_and_not_an_empty_answer(self):
        cause = [policy_agents.cause("PROCESS_CPU", 10, 20)]
        for arguments, more in [
            (("", "pod-1", "app", cause), {}),
            ((self.service, "", "app", cause), {}),
            ((self.service, "pod-1", "", cause), {}),
            ((self.service, "pod-1", "app", cause), {"duration": 0}),
            ((self.service, "pod-1", "app", cause), {"target": None}),
            ((self.service, "pod-1", "app", [policy_agents.cause("PROCESS_CPU", 10, float("nan"))]), {}),
        ]:
            with self.assertRaises(server.RpcError) as caught:
                report_task(self.server, *arguments, **more)
            self.assertEqual(caught.exception.code, "invalid_argument")

    # ---- the whole life ----

    def live(self, rover, start_s, seconds, values):
        """The agent looks each second, and checks each 5 s."""
        for second in range(start_s, start_s + seconds):
            rover.look(second, values(second))
            if second % 5 == 0:
                rover.check(second * 1000 + 137)

    def test_dry_run_gives_the_values_that_the_agent_measured(self):
        rate = {"monitor": "MONITOR_KIND_HTTP_ERROR_RATE", "threshold": "50", "period_seconds": 10, "count": 4}
        cpu = {**CPU, "count": 6}
        target = [
            {"kind": "TASK_KIND_ON_CPU", "check_items": [cpu, rate]},
            {"kind": "TASK_KIND_NETWORK", "check_items": [{**rate, "uri_paths": ["/buy"]}]},
        ]
        armed = {"service": self.service, "targets": target}
        self.ask("SetPolicy", {"policy": armed})
        processes = [Watched(self.service, "pod-1", "app"), Watched(self.service, "pod-1", "proxy")]
        rover = PolicyRover(self.server, processes)
        rover.poll()
        self.assertEqual(rover.poll(), [])
        start = (server.now_ms() // 1000 - 3000) // 5 * 5

        def values(second):
            at = second - start
            found = {("app", "PROCESS_CPU", ""): 5.0, ("proxy", "PROCESS_CPU", ""): 70.0}
            if 100 <= at < 120 or 1500 <= at < 1510:
                found["app", "PROCESS_CPU", ""] = 97.526
            if 200 <= at < 203:
                found["proxy", "PROCESS_CPU", ""] = 99.0  # too short
            if at >= 300 and at % 2 == 0:
                found["proxy", "HTTP_ERROR_RATE", "global"] = 60.0 if at < 330 else 10.0
                found["proxy", "HTTP_ERROR_RATE", "/buy"] = 75.0 if 400 <= at < 420 else 0.0
            return found

        self.live(rover, start, 1700, values)
        agent = [(kind, instance, process, at) for kind, instance, process, at, _ in rover.triggers]
        self.assertEqual([(k, p) for k, _, p, _ in agent], [("ON_CPU", "app"), ("ON_CPU", "proxy"), ("NETWORK", "proxy"), ("ON_CPU", "app")])
        run = self.ask(
            "DryRun", {"policy": armed, "start_ms": str(start * 1000), "end_ms": str((start + 1700) * 1000)}, self.other
        )
        found = [
            (t["kind"].replace("TASK_KIND_", ""), t["instance"], t["process"], int(t["atMs"])) for t in run["triggers"]
        ]
        self.assertEqual(found, agent)
        self.assertEqual(run["triggers"][0]["cause"]["message"], "PROCESS_CPU: current 97.52% >= threshold 80.00%")
        self.assertEqual(int(run["triggers"][0]["silentUntilMs"]), agent[0][3] + policy_agents.SILENCE_MS)
        self.assertEqual(run["triggers"][2]["cause"]["uriPath"], "/buy")
        self.assertEqual(run["resolutionMs"], "5000")
        notes = "\n".join(run["notes"])
        self.assertIn("no metrics of HTTP_ERROR_RATE of /buy before", notes)
        # A louder policy would have been quieter; of what nobody watches, nothing is known.
        quiet = policy(self.service, {**cpu, "threshold": "100"}, {**CPU, "monitor": "MONITOR_KIND_SYSTEM_LOAD"})
        run = self.ask("DryRun", {"policy": quiet, "start_ms": str(start * 1000)})
        self.assertNotIn("triggers", run)
        self.assertIn("no metrics of SYSTEM_LOAD: ", "\n".join(run["notes"]))

    def test_a_policy_is_set_and_polled_and_triggers_one_task(self):
        self.ask("SetPolicy", {"policy": policy(self.service, {**CPU, "threshold": "10"})})
        app = agents.Process(self.service, "pod-1", "app")
        idle = agents.Process(self.service, "pod-1", "idle")
        agent = agents.Rover(self.server)
        agent.report(app, idle)
        rover = PolicyRover(self.other, [Watched(self.service, "pod-1", "app"), Watched(self.service, "pod-1", "idle")])
        rover.poll()
        now = server.now_ms()
        start = (now // 1000 - 60) // 5 * 5
        busy = lambda second: {("app", "PROCESS_CPU", ""): 97.526, ("idle", "PROCESS_CPU", ""): 1.0}
        self.live(rover, start, 61, busy)
        ((target, instance, process, _, task_id),) = rover.triggers
        self.assertEqual((target, instance, process), ("ON_CPU", "pod-1", "app"))
        task = self.other.connect("hearth.v1.TaskService/GetTask", {"task_id": task_id})["task"]
        self.assertEqual(task["origin"], "TASK_ORIGIN_POLICY")
        self.assertEqual((task["service"], task["instance"], task["process"]), (self.service, "pod-1", "app"))
        self.assertEqual(task["processId"], app.process_id)
        self.assertEqual(task["causes"][0]["message"], "PROCESS_CPU: current 97.52% >= threshold 10.00%")
        # It runs where it was started, so nobody is told of it.
        self.assertEqual(agent.query_tasks(), [])
        state = self.ask("GetPolicy", {"service": self.service})
        self.assertEqual(state["status"][0]["triggeredCount"], 1)
        self.assertEqual(state["status"][0]["lastTriggeredMs"], task["startMs"])
        found = self.ask("MonitoredInstances", {"service": self.service, "kind": "TASK_KIND_ON_CPU"})
        (instance,) = found["instances"]
        self.assertEqual((instance["instance"], instance["triggeredCount"]), ("pod-1", 1))
        by_name = {p["process"]["name"]: p for p in instance["processes"]}
        self.assertEqual(sorted(by_name), ["app", "idle"])
        self.assertEqual(by_name["app"]["triggeredCount"], 1)
        self.assertEqual(int(by_name["app"]["silentUntilMs"]), int(task["startMs"]) + policy_agents.SILENCE_MS)
        self.assertNotIn("triggeredCount", by_name["idle"])
        other = self.ask("MonitoredInstances", {"service": self.service, "kind": "TASK_KIND_NETWORK"})["instances"][0]
        self.assertNotIn("triggeredCount", other)
        # What is observed starts nothing, and is reported.
        self.set({**CPU, "threshold": "1"}, observe=True)
        rover.poll()
        rover.started.clear()
        for watched in rover.processes:
            watched.slots.clear()
        self.live(rover, start + 65, 20, busy)
        self.assertEqual(len(rover.triggers), 1)
        self.assertGreater(len(self.series(end_ms=str((start + 90) * 1000))["MONITOR_KIND_PROCESS_CPU", "pod-1", "app", ""]), 14)

    def test_tasks_started_by_a_policy_collect_stacks(self):
        self.set({**CPU, "threshold": "10"})
        app, idle = (agents.Process(self.service, "pod-1", name) for name in ("app", "idle"))
        agent = agents.Rover(self.server)
        agent.report(app, idle)
        rover = PolicyRover(self.other, [Watched(self.service, "pod-1", "app"), Watched(self.service, "pod-1", "idle")])
        rover.poll()
        start = (server.now_ms() // 1000 - 60) // 5 * 5
        self.live(rover, start, 31, lambda second: {("app", "PROCESS_CPU", ""): 42.0, ("idle", "PROCESS_CPU", ""): 1.0})
        ((_, _, process, _, task_id),) = rover.triggers
        self.assertEqual(process, "app")
        # It collects under the id that it was told, to whichever server.
        begin = server.now_ms() - 20_000
        for k, to in enumerate((self.server, self.other, self.server)):
            flush = task_data.metadata(task_id, app.process_id, begin, begin + 5000 * (k + 1))
            task_data.collect(to, [
                task_data.on_cpu((1, 2), 3 + k, "sys_read", "main-serve", flush),
                task_data.on_cpu((0, 3), 2, user="main-parse"),
            ])
        ask = lambda method, to=self.other, **message: to.connect("hearth.v1.TaskService/" + method, message)
        self.assertEqual(ask("GetTask", taskId=task_id)["task"]["state"], "TASK_STATE_RUNNING")
        # As if it had begun half an hour before: it is over.
        server.sql(self.cluster.url(),
                   "UPDATE hearth_data.task SET start_at = start_at - 1800000, created_at = created_at - 1800000,"
                   " updated_at = updated_at - 1800000 WHERE task_id = '%s'" % task_id)
        seen = ask("GetTask", taskId=task_id)
        self.assertEqual((seen["task"]["origin"], seen["task"]["state"]), ("TASK_ORIGIN_POLICY", "TASK_STATE_FINISHED"), seen)
        (schedule,) = ask("ListSchedules", taskId=task_id)["schedules"]
        self.assertEqual((schedule["process"], schedule["instance"]), ("app", "pod-1"))
        tree = task_data.trees(ask("AnalyzeStacks", scheduleIds=[schedule["scheduleId"]]))
        expected = {("main", "serve", "sys_read"): 12, ("main", "parse"): 6}
        self.assertEqual(task_data.names(tree), expected)
        # The same in the store, under the service.
        selector = '{service_name="%s", instance="pod-1", process_name="app"}' % self.service
        kind = "process_cpu:samples:count:cpu:nanoseconds"
        for to in (self.server, self.other):
            found = Decoded(to.merge_pprof(kind, selector, begin, begin + 20_000)).by_stack(0)
            stacks = {tuple(line[0] for line in reversed(lines)): value for lines, value in found.items()}
            self.assertEqual(stacks, expected)
        graph = self.server.connect("querier.v1.QuerierService/SelectMergeStacktraces", {
            "profileTypeID": kind, "labelSelector": '{service_name="%s"}' % self.service,
            "start": str(begin), "end": str(begin + 20_000)})["flamegraph"]
        self.assertEqual(graph["total"], "18")
        self.assertTrue({"serve", "parse", "sys_read"} <= set(graph["names"]), graph["names"])
        instances = self.ask("MonitoredInstances", {"service": self.service, "kind": "TASK_KIND_ON_CPU"})["instances"]
        self.assertEqual([(i["instance"], i["triggeredCount"]) for i in instances], [("pod-1", 1)])
        counts = {p["process"]["name"]: p.get("triggeredCount", 0) for p in instances[0]["processes"]}
        self.assertEqual(counts, {"app": 1, "idle": 0})
        self.assertEqual(self.ask("GetPolicy", {"service": self.service})["status"][0]["triggeredCount"], 1)

    def test_each_monitored_instance_has_its_own_counts_and_properties(self):
        self.set({**CPU, "threshold": "10"})
        instances = ["pod-b", "pod-a", "pod-B", "pod-\u00e9", "pod"]
        agents.Rover(self.server).report(*[agents.Process(self.service, name, "app") for name in instances])
        for name in ["p", *instances, "pod-c"]:
            agents.Instance(self.server, self.service, name).report({"name": name})
        for name in instances[1::2]:
            causes = [policy_agents.cause("PROCESS_CPU", 10, 97.5)]
            policy_agents.report_task(self.server, self.service, name, "app", causes)
        found = self.ask("MonitoredInstances", {"service": self.service, "kind": "TASK_KIND_ON_CPU"})["instances"]
        facts = [(i["instance"], i["properties"][-1]["value"], i.get("triggeredCount", 0)) for i in found]
        self.assertEqual(facts, [(name, name, int(name in instances[1::2])) for name in sorted(instances)])

    # ---- the client ----

    def hearth(self, *arguments, stdin="", code=0):
        done = subprocess.run(
            [server.HEARTH, "policy", *arguments, "--url", "http://127.0.0.1:%d" % self.server.port],
            input=stdin.encode(), capture_output=True, timeout=60, env=server.server_environment({"TZ": "UTC", "USER": "ada"}),
        )
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def test_the_client_applies_files(self):
        text = "policy: [{type: ON_CPU, checkers: [{type: PROCESS_CPU, threshold: %d, period: 10, count: 3}]}]"
        first = "ON_CPU   PROCESS_CPU             >= 80 percent in 3 of 10 s\n"
        self.hearth("get", self.service, code=3)
        out, _ = self.hearth("diff", self.service, "-f", "-", stdin=text % 80)
        self.assertEqual(out, "+ " + first)
        out, err = self.hearth("apply", self.service, "-f", "-", stdin=text % 80)
        self.assertIn("version 1, ", out)
        self.assertIn("by ada", out)
        self.assertIn("+ " + first, err)
        self.assertIn("no agent has reported a process", err)
        out, _ = self.hearth("diff", self.service, "-f", "-", stdin=text % 80)
        self.assertEqual(out, "nothing changes\n")
        out, _ = self.hearth("diff", self.service, "-f", "-", "--observe", stdin=text % 90)
        self.assertEqual(out, "- " + first + "+ " + first.replace("80", "90") + "+ observing\n")
        # What was asked for can be applied again.
        answer, _ = self.hearth("get", self.service, "-o", "json")
        out, _ = self.hearth("diff", self.service, "-f", "-", stdin=answer)
        self.assertEqual(out, "nothing changes\n")
        _, err = self.hearth("apply", self.service, "-f", "-", stdin=text % 101, code=2)
        self.assertIn("check PROCESS_CPU in ON_CPU error: the process CPU percent should be in (0-100]", err)
        _, err = self.hearth("apply", self.service, "-f", "-", stdin="policy: [{type: TRACE}]", code=2)
        self.assertIn("line 1: unknown target", err)
        out, _ = self.hearth("set", self.service, "--observe", "--modified-by", "bob")
        self.assertIn("observing", out)
        watched = [line.split()[1] for line in out.splitlines() if " >= " in line]
        self.assertEqual(watched, ["PROCESS_CPU", "PROCESS_THREAD_COUNT", "SYSTEM_LOAD"])
        out, _ = self.hearth("history", self.service)
        self.assertEqual([line.split(" by ")[1].split(":")[0] for line in out.splitlines() if " by " in line], ["bob", "ada"])
        self.assertIn(self.service, self.hearth("list")[0])
        self.hearth("delete", self.service)
        self.hearth("delete", self.service, code=3)
        self.assertIn("hearth policy", self.hearth(code=2)[0])

    def test_the_client_shows_past_metrics_and_a_dry_run(self):
        at = server.now_ms() - 60_000
        labels = {"process_name": "app"}
        sets = [[(1, meter("rover_con_p_process_cpu", 50.0, labels, self.service, "pod-1", at + i * 5000))] for i in range(10)]
        send_meters(self.server, sets)
        out, _ = self.hearth("series", self.service)
        self.assertIn("pod-1/app  PROCESS_CPU", out)
        self.assertIn("10 values, mean 50, most 50 percent", out)
        _, err = self.hearth("series", self.service, "--monitor", "SYSTEM_LOAD")
        self.assertIn("no metrics", err)
        text = "policy: [{type: OFF_CPU, checkers: [{type: PROCESS_CPU, threshold: 50, period: 10, count: 10}]}]"
        out, err = self.hearth("dry-run", self.service, "-f", "-", stdin=text)
        self.assertRegex(out, r"OFF_CPU  pod-1 +app +PROCESS_CPU: current 50\.00% >= threshold 50\.00%")
        self.assertIn("no metrics of PROCESS_CPU before", err)
        agents.Rover(self.server).report(agents.Process(self.service, "pod-1", "app"))
        watch = [server.HEARTH, "policy", "monitored", self.service, "--watch", "--url", "http://127.0.0.1:%d" % self.server.port]
        watching, as_json = (
            subprocess.Popen(watch + more, stdout=subprocess.PIPE, env=server.server_environment()) for more in ([], ["-o", "json"])
        )
        lines, objects = queue.Queue(), queue.Queue()
        for ran, to in ((watching, lines), (as_json, objects)):
            threading.Thread(target=lambda ran=ran, to=to: [to.put(line) for line in ran.stdout], daemon=True).start()
        try:
            def started():
                # A task of before the watch is not shown: start others until one is.
                report_task(self.server, self.service, "pod-%d" % server.now_ms(), "app", [policy_agents.cause("PROCESS_CPU", 50, 60)])
                return not lines.empty() and not objects.empty()

            server.eventually(started, pause=0.5)
            self.assertIn(b"PROCESS_CPU: current 60.00% >= threshold 50.00%", lines.get())
            self.assertEqual(json.loads(objects.get())["tasks"][0]["service"], self.service)
        finally:
            for ran in (watching, as_json):
                ran.terminate()
                ran.wait()
                ran.stdout.close()
        report_task(self.server, self.service, "pod-1", "app", [policy_agents.cause("PROCESS_CPU", 50, 60)])
        out, _ = self.hearth("monitored", self.service)
        self.assertRegex(out, r"pod-1  triggered 1 times, last .*\n  app  triggered 1 times, last .*, silent until ")

    def test_policies_and_metrics_survive_both_servers(self):
        uuid = self.set()["policy"]["uuid"]
        at = server.now_ms()
        send_meters(
            self.other, [[(1, meter("rover_con_p_process_cpu", 3.5, {"process_name": "app"}, self.service, "pod-1", at))]]
        )
        # A line that had no value for longer than they are kept goes when a server looks, at its start and each minute.
        ended = self.service + "-ended"
        send_meters(self.server, [[(1, meter("rover_con_p_process_cpu", 3.5, {"process_name": "app"}, ended, "pod-1", at))]])
        count = "SELECT count(*) FROM hearth_data.monitor_line l JOIN hearth_data.service s USING (service_id) WHERE s.name = '%s'"
        server.sql(self.cluster.url(), "UPDATE hearth_data.monitor_line SET last_day = 7 WHERE service_id = (SELECT service_id FROM hearth_data.service WHERE name = '%s')" % ended)
        Policies.other.kill9()
        Policies.other = server.Server(database_url=self.cluster.url())
        self.assertEqual(query_policies(Policies.other, {self.service: uuid}), [])
        self.assertEqual(list(self.series(Policies.other).values()), [[(at, 3.5)]])
        server.eventually(lambda: server.sql(self.cluster.url(), count % ended)[0][0] in (0, "0"), 90)
        self.assertIn(server.sql(self.cluster.url(), count % self.service)[0][0], (1, "1"))

    def test_without_its_database_agents_are_told_to_retry(self):
        cluster = server.Cluster()
        to = server.Server("--request-timeout", "5s", database_url=cluster.url())
        at = server.now_ms()
        sets = [[(1, meter("rover_con_p_process_cpu", 3.5, {"process_name": "app"}, self.service, "pod-1", at))]]
        cause = [policy_agents.cause("PROCESS_CPU", 10, 20)]
        try:
            uuid = self.set(to=to)["policy"]["uuid"]
            cluster.stop()
            # Never an empty answer: agents would take it for a task, or for no policy.
            for ask in (
                lambda: report_task(to, self.service, "pod-1", "app", cause),
                lambda: query_policies(to, {self.service: "old"}),
            ):
                with self.assertRaises(server.RpcError) as caught:
                    ask()
                self.assertIn(caught.exception.code, ("unavailable", "deadline_exceeded"))
            with self.assertRaises(grpc.RpcError) as caught:
                send_meters(to, sets)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            cluster.start()
            to.wait_ready()
            self.assertEqual(query_policies(to, {self.service: uuid}), [])
            self.assertTrue(report_task(to, self.service, "pod-1", "app", cause))
            send_meters(to, sets)
            self.assertEqual(list(self.series(to).values()), [[(at, 3.5)]])
        finally:
            to.stop()
            cluster.stop()


if __name__ == "__main__":
    unittest.main()
