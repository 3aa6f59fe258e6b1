"""SkyWalking's agents introduce themselves and their processes; hearth.v1.ProcessService tells who is there."""

import json
import time
import unittest

import agents
import wire
from agents import Instance, Process, Rover
from server import Cluster, RpcError, Server, eventually, in_threads, now_ms
from test_cli import NO_DATA, USAGE, hearth

PROCESSES = "hearth.v1.ProcessService/"


def answered(server, method, request, tenant=None):
    return server.connect(PROCESSES + method, request, {"X-Scope-OrgID": tenant} if tenant else None)


class Agents(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.server = Server("--multitenancy", database_url=cls.cluster.url())

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cluster.stop()

    def ask(self, method, request, tenant):
        return answered(self.server, method, request, tenant)

    def processes(self, tenant, **request):
        return self.ask("ListProcesses", request, tenant).get("processes", [])

    def refused(self, code, part, method, fields, tenant="refused"):
        with self.assertRaises(RpcError) as caught:
            self.server.call(method, fields, [("x-scope-orgid", tenant)])
        self.assertEqual(caught.exception.code, code)
        self.assertIn(part, caught.exception.message)

    # ---- processes ----

    def test_a_report_is_answered_with_the_id_of_each_process(self):
        rover = Rover(self.server, "echo")
        processes = [
            Process("shop", "pod-1", "java", ["web", "eu", "web"], pid=7),
            Process("shop", "pod-1", "java", [], pid=8),  # the same process, seen twice: both are answered
            Process("wms", "host-1", " ü\u3000 ", ["b", "a"], layer="OS_LINUX", pid=7, host=True),
            Process("wms", "host-1", "python", layer="", pid=2147483647, host=True),
        ]
        self.assertEqual(rover.report(*processes), [p.process_id for p in processes])

    def test_an_answer_has_the_bytes_of_the_entity_and_its_order(self):
        entities = []
        fields = []
        for i in range(5):
            # Fields out of order, one twice, one that nobody knows: what comes is what goes back.
            entity = wire.encode([(5, "z"), (4, "p%d" % i), (3, "i"), (2, "s"), (1, "L"), (5, "a"), (99, "later")])
            entities.append(wire.decode(entity))
            fields.append((1, [(2 if i % 2 else 1, [(1, entity), (2, i + 1)])]))
        answer = self.server.call(
            Rover.PROCESSES + "reportProcesses", fields + [(2, "agent")], [("x-scope-orgid", "bytes")]
        )
        self.assertEqual(len(answer[1]), 5)
        for i, raw in enumerate(answer[1]):
            downstream = wire.decode(raw)
            self.assertEqual(sorted(downstream), [1, 3 if i % 2 else 2])
            arm = wire.decode(downstream[3 if i % 2 else 2][0])
            self.assertEqual(arm[1], [i + 1])
            self.assertEqual(wire.decode(arm[2][0]), entities[i])
            self.assertEqual(downstream[1], [agents.process_id("s", "i", "p%d" % i).encode()])

    def test_reported_processes_can_be_listed(self):
        rover = Rover(self.server, "asked", agent_id="rover-1")
        before = now_ms()
        java = Process("shop", "pod-1", "java", ["web", "eu"], pid=7)
        nginx = Process("shop", "pod-2", "nginx", ["web"], pid=9, can_be_profiled=False, host=True, layer="OS_LINUX")
        rover.report(java, nginx)
        Instance(self.server, "shop", "pod-3", "asked").report({"OS Name": "Linux", "language": "java"})
        found = self.processes("asked", service="shop")
        self.assertEqual([p["name"] for p in found], ["java", "nginx"])
        seen = int(found[0].pop("firstSeenMs"))
        self.assertTrue(before <= seen <= now_ms(), seen)
        self.assertEqual(int(found[0].pop("lastSeenMs")), seen)
        self.assertEqual(
            found[0],
            {
                "processId": java.process_id, "service": "shop", "instance": "pod-1", "name": "java",
                "detectType": "DETECT_TYPE_KUBERNETES", "agentId": "rover-1", "labels": ["eu", "web"],
                "properties": [
                    {"name": "command_line", "value": "/bin/java"}, {"name": "container_ip", "value": "10.1.0.1"},
                    {"name": "host_ip", "value": "10.0.0.1"}, {"name": "pid", "value": "7"},
                    {"name": "support_ebpf_profiling", "value": "true"},
                ],
                "canBeProfiled": True,
            },
        )
        self.assertEqual((found[1]["detectType"], found[1].get("canBeProfiled", False)), ("DETECT_TYPE_HOST", False))
        self.assertEqual(self.ask("GetProcess", {"processId": java.process_id}, "asked")["process"]["name"], "java")
        for request, names in (
            ({"labels": ["web", "eu"]}, ["java"]), ({"labels": ["web"]}, ["java", "nginx"]), ({"labels": ["db"]}, []),
            ({"instance": "pod-2"}, ["nginx"]), ({"startMs": now_ms() + 60_000}, []), ({"endMs": before - 1}, []),
            ({"startMs": before, "endMs": now_ms()}, ["java", "nginx"]),
        ):
            self.assertEqual([p["name"] for p in self.processes("asked", service="shop", **request)], names, request)
        services = self.ask("ListServices", {}, "asked")["services"]
        self.assertEqual(len(services), 1)
        self.assertEqual(services[0]["labels"], ["eu", "web"])
        self.assertEqual((services[0]["instanceCount"], services[0]["processCount"]), (3, 2))
        instances = self.ask("ListInstances", {"service": "shop"}, "asked")["instances"]
        self.assertEqual(
            [(i["instance"], i["layer"], i.get("properties", [])) for i in instances],
            [
                ("pod-1", "K8S_SERVICE", []), ("pod-2", "OS_LINUX", []),
                ("pod-3", "GENERAL", [{"name": "OS Name", "value": "Linux"}, {"name": "language", "value": "java"}]),
            ],
        )

    def test_keep_alive_keeps_fields_that_it_lacks(self):
        rover = Rover(self.server, "merged")
        process = Process("shop", "pod-1", "java", ["web"])
        rover.report(process)
        process.labels, process.can_be_profiled = [], False
        self.assertEqual(rover.keep_alive(), [])
        found = self.processes("merged", service="shop")[0]
        self.assertEqual(found["labels"], ["web"])
        self.assertFalse(found.get("canBeProfiled", False))
        self.assertIn({"name": "command_line", "value": "/bin/java"}, found["properties"])
        other = Rover(self.server, "merged")  # the agent was started again, under another id
        process.can_be_profiled, process.labels = True, ["db"]
        other.keep_alive(process, Process("shop", "pod-1", "new"))
        found = self.processes("merged", service="shop")
        self.assertEqual([(p["name"], p["agentId"]) for p in found], [("java", other.agent_id), ("new", other.agent_id)])
        self.assertEqual((found[0]["labels"], found[0]["canBeProfiled"]), (["db"], True))
        self.assertNotIn("detectType", found[1])  # a ping does not say what it is

    def test_an_instance_merges_its_reports_and_keep_alives(self):
        instance = Instance(self.server, "shop", "pod-1", "alive")
        self.assertEqual(instance.keep_alive(), [])
        self.assertEqual(instance.report({"a": "1", "b": "1"}), [])
        instance.report({"b": "2"})
        instance.layer = "FAAS"
        instance.keep_alive()
        found = self.ask("ListInstances", {"service": "shop"}, "alive")["instances"]
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0]["layer"], "FAAS")
        self.assertEqual(found[0]["properties"], [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}])

    # ---- the client ----

    def hearth(self, *arguments):
        env = {"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port, "HEARTH_TENANT": "client"}
        return hearth("agents", *arguments, env=env)

    def test_the_client_shows_live_processes(self):
        rover = Rover(self.server, "client")
        java = Process("shop", "pod-1", "java", ["web", "eu"])
        rover.report(java, Process("shop", "pod-22", "nginx", ["web"], host=True, can_be_profiled=False), Process("wms", "w", "w"))
        Instance(self.server, "shop", "pod-3", "client").report({"OS Name": "Linux\x1b[1m", "x": "y"})
        self.server.sql("UPDATE hearth_data.instance SET first_seen = 1, last_seen = 1763629200000 WHERE name = 'w'")
        shown = self.hearth("services").lines()
        self.assertRegex(shown[0], r"^service  layer +instances  processes  last seen +labels$")
        self.assertRegex(shown[1], r"^shop     \S+ +3 +2  20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ  eu,web$")
        self.assertEqual(len(shown), 2)
        everything = self.hearth("services", "--all").lines()
        self.assertRegex(everything[2], r"^wms .*  2025-11-20T09:00:00Z$")
        within = self.hearth("services", "--from", "2025-11-20T08:00:00Z", "-o", "json")
        self.assertEqual([s["service"] for s in json.loads(within.out)["services"]], ["shop", "wms"])
        shown = self.hearth("instances", "shop").lines()
        self.assertEqual([line.split()[0] for line in shown], ["instance", "pod-1", "pod-22", "pod-3"])
        self.assertTrue(shown[3].endswith("OS Name=Linux\\u001b[1m x=y"), shown)  # no control bytes to a terminal
        shown = self.hearth("processes", "--service", "shop").lines()
        self.assertRegex(shown[1], "^pod-1     java     kubernetes  yes         .*  eu,web  %s$" % java.process_id)
        self.assertRegex(shown[2], "^pod-22    nginx    host        no ")
        self.assertEqual(len(self.hearth("processes", "shop", "--instance", "pod-22").lines()), 2)
        found = json.loads(self.hearth("processes", "shop", "--process-labels", "eu,web", "-o", "json").out)
        self.assertEqual([p["processId"] for p in found["processes"]], [java.process_id])

    def test_the_client_names_missing_and_surplus_arguments(self):
        done = self.hearth("processes")
        self.assertEqual(done.code, USAGE)
        self.assertIn("service name required", done.err)
        self.assertEqual(self.hearth("instances", "nobody").code, NO_DATA)
        self.assertEqual(self.hearth("services", "more").code, USAGE)

    # ---- bad input ----

    def test_missing_parts_are_named_and_nothing_is_stored(self):
        entity = [(1, "L"), (2, "s"), (3, "i"), (4, "p")]
        good = (1, [(2, [(1, entity), (2, 1)])])
        report, alive = Rover.PROCESSES + "reportProcesses", Rover.PROCESSES + "keepAlive"
        for bad, part in (
            ((1, []), "processes[1] has neither hostProcess nor k8sProcess"),
            ((1, [(1, [(2, 1)])]), "processes[1].hostProcess.entity is missing"),
            ((1, [(2, [(1, entity)])]), "processes[1].k8sProcess.pid is 0"),
            ((1, [(2, [(1, entity), (2, -1)])]), "processes[1].k8sProcess.pid is -1"),
            ((1, [(2, [(1, entity[2:]), (2, 1)])]), "processes[1].k8sProcess.entity.serviceName is missing"),
            ((1, [(2, [(1, entity[:2] + entity[3:]), (2, 1)])]), "processes[1].k8sProcess.entity.instanceName is missing"),
            ((1, [(1, [(1, entity[:3] + [(4, " ")]), (2, 1)])]), "processes[1].hostProcess.entity.processName is missing"),
            ((1, [(1, [(1, entity[:3] + [(4, "x" * 1025)]), (2, 1)])]), "processName has 1025 bytes"),
            ((1, [(1, [(1, entity + [(5, "")]), (2, 1)])]), "processes[1].hostProcess.entity.labels is missing"),
            ((1, [(1, [(1, entity + [(5, "x" * 1025)]), (2, 1)])]), "labels has 1025 bytes"),
            ((1, [(1, [(1, [(1, "x" * 1025)] + entity[1:]), (2, 1)])]), "layer has 1025 bytes"),
        ):
            self.refused("invalid_argument", part, report, [good, bad, (2, "agent")])
        for method in (report, alive):
            self.refused("invalid_argument", "ebpfAgentID has 1025 bytes", method, [good if method == report else (1, [(1, entity)]), (2, "x" * 1025)])
        self.refused("invalid_argument", "processes[0].entityMetadata is missing", alive, [(1, [])])
        self.refused("invalid_argument", "processes[0].entityMetadata.serviceName", alive, [(1, [(1, [(1, "L")])])])
        too_many = entity + [(5, "l%d" % i) for i in range(101)]
        self.refused("resource_exhausted", "max-agent-labels allows 100", report, [good, (1, [(1, [(1, too_many), (2, 1)])])])
        long_value = [(1, entity), (2, 1), (3, [(1, "command_line"), (2, "x" * 65536)])]
        self.refused("resource_exhausted", "max-agent-property-bytes allows 65536", report, [good, (1, [(1, long_value)])])
        for method in ("reportInstanceProperties", "keepAlive"):
            self.refused("invalid_argument", "service is missing", Instance.MANAGEMENT + method, [(2, "i")])
            self.refused("invalid_argument", "serviceInstance is missing", Instance.MANAGEMENT + method, [(1, "s"), (2, " ")])
        self.assertEqual(self.ask("ListServices", {}, "refused"), {})

    def test_queries_that_name_nothing_are_refused(self):
        for method, request, code, part in (
            ("ListProcesses", {}, "invalid_argument", "the service is missing"),
            ("ListInstances", {}, "invalid_argument", "the service is missing"),
            ("GetProcess", {}, "invalid_argument", "64 hex digits"),
            ("GetProcess", {"processId": "0" * 64}, "not_found", "there is no process"),
        ):
            with self.assertRaises(RpcError) as caught:
                self.ask(method, request, "anybody")
            self.assertEqual(caught.exception.code, code)
            self.assertIn(part, caught.exception.message)
        self.assertEqual(self.processes("anybody", service="nobody"), [])

    def test_empty_reports_are_accepted(self):
        rover = Rover(self.server, "none")
        self.assertEqual(rover.report(), [])
        self.assertEqual(rover.keep_alive(), [])

    # ---- apart ----

    def test_tenants_do_not_see_each_others_processes(self):
        one, two = Rover(self.server, "tenant-1"), Rover(self.server, "tenant-2")
        process = Process("shop", "pod-1", "java")
        self.assertEqual(one.report(process), two.report(process))
        two.keep_alive(Process("shop", "pod-1", "java", can_be_profiled=False))
        found = [self.processes(tenant, service="shop")[0] for tenant in ("tenant-1", "tenant-2")]
        self.assertEqual([p["agentId"] for p in found], [one.agent_id, two.agent_id])
        self.assertEqual([p.get("canBeProfiled", False) for p in found], [True, False])
        with self.assertRaises(RpcError):
            self.ask("GetProcess", {"processId": process.process_id}, "tenant-3")


class Lives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def start(self, *options):
        server = Server(*options, database_url=self.cluster.url())
        self.addCleanup(server.kill)
        return server

    def test_two_servers_accept_concurrent_reports_of_the_same_processes(self):
        servers = [self.start(), self.start()]
        names = ["p%d" % i for i in range(500)]
        rovers = [Rover(server) for server in servers]
        lists = [[Process("shop-%d" % (i % 5), "pod-1", n) for i, n in enumerate(names)] for _ in servers]
        lists[1].reverse()

        def live(rover, processes):
            for i in range(6):
                rover.report(*processes) if i % 3 == 0 else rover.keep_alive(*processes)
            return len(processes)

        self.assertEqual(in_threads([lambda r=r, l=l: live(r, l) for r, l in zip(rovers, lists)]), [500, 500])
        for server in servers:
            found = [answered(server, "ListProcesses", {"service": "shop-%d" % i})["processes"] for i in range(5)]
            self.assertEqual([len(f) for f in found], [100] * 5)
        deadlocks = "SELECT sum(deadlocks) FROM pg_stat_database"
        self.assertEqual(servers[0].sql(deadlocks), [["0"]])

    def test_a_restart_keeps_all_processes(self):
        server = self.start("--multitenancy", "--agent-tenant", "kept")
        Rover(server).report(Process("shop", "pod-1", "java", ["web"]))
        Instance(server, "shop", "pod-2").report()
        said = [("ListProcesses", {"service": "shop"}), ("ListInstances", {"service": "shop"}), ("ListServices", {})]
        before = [answered(server, method, request, "kept") for method, request in said]
        self.assertEqual(len(before[1]["instances"]), 2)
        server.kill9()
        server.start()
        self.assertEqual([answered(server, method, request, "kept") for method, request in said], before)

    def test_silent_processes_are_forgotten(self):
        server = self.start("--multitenancy", "--agent-tenant", "old", "--retain-agents", "5s")
        rover = Rover(server)
        rover.report(Process("shop", "pod-1", "java"), Process("wms", "pod-1", "java"))
        staying = Process("shop", "pod-2", "java")

        def gone():
            rover.keep_alive(staying)
            time.sleep(0.5)
            return len(answered(server, "ListServices", {}, "old")["services"]) == 1

        rover.report(staying)
        eventually(gone, what="the instances are forgotten")
        self.assertEqual(
            [p["instance"] for p in answered(server, "ListProcesses", {"service": "shop"}, "old")["processes"]], ["pod-2"]
        )
        left = "SELECT s.name FROM hearth_data.service s JOIN hearth_data.tenant t USING (tenant_id) WHERE t.name = 'old'"
        eventually(lambda: server.sql(left) == [["shop"]], what="a service without anything is removed")

    def test_the_number_of_processes_of_a_tenant_is_limited(self):
        server = self.start("--multitenancy", "--agent-tenant", "few", "--max-agent-processes", "2", "--max-agent-instances", "2")
        rover = Rover(server)
        known = [Process("shop", "pod-1", "a"), Process("shop", "pod-1", "b")]
        rover.report(*known)
        with self.assertRaises(RpcError) as caught:
            rover.report(*known, Process("shop", "pod-1", "c"))
        self.assertEqual(caught.exception.code, "resource_exhausted")
        self.assertIn("max-agent-processes", caught.exception.message)
        rover.report(*known)
        Instance(server, "shop", "pod-2").keep_alive()
        with self.assertRaises(RpcError) as caught:
            Instance(server, "shop", "pod-3").keep_alive()
        self.assertIn("max-agent-instances", caught.exception.message)

    def test_without_the_database_agents_are_told_to_retry(self):
        server = Server(database_url="postgresql://nobody@127.0.0.1:1/nothing", wait=False)
        self.addCleanup(server.kill)
        for ask in (lambda: Rover(server).report(Process("s", "i", "p")), Instance(server, "s", "i").report):
            with self.assertRaises(RpcError) as caught:
                ask()
            self.assertEqual(caught.exception.code, "unavailable")


if __name__ == "__main__":
    unittest.main()
