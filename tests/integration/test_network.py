"""Network tasks: topology, metrics and sampled requests of an instance, as rover reports them to two servers; what is captured
is redacted before it is stored, cut, and gone after its time."""

import json
import subprocess
import tempfile
import unittest

import agents
import server
import tasks
from agents import Instance, Network, Process, Rover
from server import RpcError, eventually, now_ms
from test_cli import NO_DATA, USAGE, has_zstd, hearth

NETWORK = "hearth.v1.NetworkService/"
MINUTE = 60_000
SECRETS = ["hunter2", "s3cr3t-token", "topsecretcookie", "4111-1111", "sesame", "har-s3cret", "head-s3cret"]


class NetworkTasks(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = server.Cluster()
        url = cls.cluster.url()
        options = ["--multitenancy", "--network-addresses", "10.9.9.9=configured.db", "--redact",
                   "authorization,cookie,password,token,/\\d{4}-\\d{4}/", "--max-captured-bytes", "2k"]
        cls.a = server.Server(*options, database_url=url)
        cls.b = server.Server(*options, database_url=url)
        cls.at = now_ms() // MINUTE * MINUTE - 10 * MINUTE

    @classmethod
    def tearDownClass(cls):
        cls.a.stop()
        cls.b.stop()
        cls.cluster.stop()

    def start(self, tenant, service="shop", at=None):
        """(network, process) of a rover that watches one instance."""
        rover = Rover(at or self.a, tenant)
        process = Process(service, "i-1", "service")
        rover.report(process)
        return Network(rover, service, "i-1"), process

    def ask(self, method, tenant, at=None, **request):
        return (at or self.b).connect(NETWORK + method, request, {"X-Scope-OrgID": tenant})

    def of_instance(self, method, tenant, service="shop", **request):
        return self.ask(method, tenant, service=service, instance="i-1", startMs=self.at, endMs=self.at + 5 * MINUTE, **request)

    def points(self, tenant, service="shop", **request):
        """{(metric, detect point, code or percentile): {minute: value}}"""
        found = {}
        for line in self.of_instance("NetworkSeries", tenant, service, **request).get("lines", []):
            key = (line["metric"], line["detectPoint"], line.get("code") or line.get("percentile") or "")
            self.assertNotIn(key, found)
            found[key] = {(int(p["atMs"]) - self.at) // MINUTE: p.get("value", 0) for p in line["points"]}
        return found

    def refused(self, part, call, code="invalid_argument"):
        with self.assertRaises(RpcError) as caught:
            call()
        self.assertEqual(caught.exception.code, code)
        self.assertIn(part, caught.exception.message)

    # ---- topology ----

    def test_the_topology_has_the_published_shape(self):
        network, process = self.start("shape")
        v = network.value
        network.flush(
            v("client_write_counts_counter", 1, network.labels(process, "1.2.3.4:80")),
            v("server_read_counts_counter", 1, network.labels("5.6.7.8:5000", process, "server")),
            at_ms=self.at,
        )
        remote = agents.process_id("shop", "i-1", "UNKNOWN_REMOTE")
        found = self.of_instance("Topology", "shape")
        self.assertEqual(
            [(n["processId"], n["name"], n["detectType"], sorted(n.get("addresses", []))) for n in found["nodes"]],
            [(process.process_id, "service", "DETECT_TYPE_KUBERNETES", []),
             (remote, "UNKNOWN_REMOTE", "DETECT_TYPE_VIRTUAL", ["1.2.3.4:80", "5.6.7.8:5000"])],
        )
        calls = {(c["sourceId"], c["destinationId"]): c for c in found["calls"]}
        self.assertEqual(len(found["calls"]), 2)
        out, back = calls[process.process_id, remote], calls[remote, process.process_id]
        self.assertEqual(out["callId"], process.process_id + "-" + remote)
        self.assertEqual((out["sourceComponents"], out.get("destinationComponents", []), out["detectPoints"]), (["http"], [], ["CLIENT"]))
        self.assertEqual((back.get("sourceComponents", []), back["destinationComponents"], back["detectPoints"]), ([], ["http"], ["SERVER"]))
        virtual = self.b.connect(
            "hearth.v1.ProcessService/GetProcess", {"processId": remote}, {"X-Scope-OrgID": "shape"}
        )["process"]
        self.assertEqual((virtual["name"], virtual["detectType"], virtual.get("agentId", "")), ("UNKNOWN_REMOTE", "DETECT_TYPE_VIRTUAL", ""))

    def test_components_ends_and_names_are_distinguished(self):
        network, process = self.start("ends")
        other = Process("shop", "i-1", "other", pid=2)
        network.agent.report(other)
        names = [{"address": "1.1.1.1", "name": "cache"}, {"address": "1.1.1.1:8080", "name": "web"}]
        answer = self.ask("SetAddresses", "ends", at=self.a, addresses=names)
        self.assertEqual([(a["address"], a["name"], a.get("isConfigured", False)) for a in answer["addresses"]],
                         [("1.1.1.1", "cache", False), ("1.1.1.1:8080", "web", False), ("10.9.9.9", "configured.db", True)])
        kinds = [(other, "http", True), ("local", "unknown", False), ("1.1.1.1:8080", "unknown", True),
                 ("1.1.1.1:9", "http", False), ("10.9.9.9:5432", "unknown", False), ("[::1]:7", "unknown", False)]
        network.flush(
            *[network.value("client_read_counts_counter", 1, network.labels(process, end, protocol=p, ssl=ssl)) for end, p, ssl in kinds],
            at_ms=self.at,
        )
        found = self.of_instance("Topology", "ends")
        names = {n["processId"]: n["name"] for n in found["nodes"]}
        self.assertEqual(
            sorted((names[c["destinationId"]], c["sourceComponents"]) for c in found["calls"]),
            [("UNKNOWN_LOCAL", ["tcp"]), ("UNKNOWN_REMOTE", ["tcp"]), ("cache", ["http"]), ("configured.db", ["tcp"]),
             ("other", ["https"]), ("web", ["tls"])],
        )
        self.assertEqual(self.of_instance("Topology", "nobody"), {})
        gone = self.ask("SetAddresses", "ends", addresses=[{"address": "1.1.1.1", "name": ""}])
        self.assertEqual([a["address"] for a in gone["addresses"]], ["1.1.1.1:8080", "10.9.9.9"])
        self.assertEqual([a["address"] for a in self.ask("ListAddresses", "other-tenant")["addresses"]], ["10.9.9.9"])
        self.refused("is named by the option", lambda: self.ask("SetAddresses", "ends", addresses=[{"address": "10.9.9.9", "name": "x"}]))
        self.refused("is not an address", lambda: self.ask("SetAddresses", "ends", addresses=[{"address": "1.1.1.1:99999", "name": "x"}]))

    def test_an_ipv6_address_has_its_name_as_agents_write_it(self):
        network, process = self.start("ipv6")
        names = [{"address": "2001:db8::1", "name": "cache"}, {"address": "[2001:db8::1]:5432", "name": "db"}]
        self.ask("SetAddresses", "ipv6", addresses=names)
        ends = ["2001:db8::1:5432", "2001:db8::1:80", "2001:db8:0:0:0:0:0:1:81", "[2001:db8::1]:82", "2001:db8::2:80"]
        network.flush(*[network.value("client_read_counts_counter", 1, network.labels(process, end)) for end in ends], at_ms=self.at)
        found = {n["name"]: sorted(n.get("addresses", [])) for n in self.of_instance("Topology", "ipv6")["nodes"]}
        self.assertEqual(found, {"service": [], "db": ends[:1], "cache": sorted(ends[1:4]), "UNKNOWN_REMOTE": ends[4:]})

    # ---- metrics ----

    def test_metrics_have_exact_values(self):
        network, process = self.start("metrics")
        labels = network.labels(process, "1.2.3.4:80")
        for at, writes, exe, rtt in ((0, 3, 100, 7), (2000, 4, 300, 8), (MINUTE, 5, 50, 9)):
            network.flush(
                network.value("client_write_counts_counter", writes, labels),
                network.value("client_write_counts_counter", 1, labels),  # of one flush: added up
                network.value("client_write_bytes_counter", 10 * writes, labels),
                network.value("client_write_exe_time_counter", exe, labels),
                network.value("client_write_rtt_exe_time_counter", rtt, labels),
                network.value("client_connect_exe_time_counter", 1.5, labels),
                network.value("http1_request_counter", writes, labels),
                network.value("http1_response_status_counter", writes, {**labels, "code": "200"}),
                network.value("http1_response_status_counter", 1, {**labels, "code": "500"}),
                network.value("http1_client_duration_avg", exe, labels),
                network.value("nobody_knows_this", 1, labels),
                network.histogram("http1_client_duration_histogram", {0: 50, 5: 25, 10: 24, 500: 1}, labels),
                at_ms=self.at + at,
            )
        found = self.points("metrics")
        client = lambda name, part="": found[name, "CLIENT", part]
        self.assertEqual(client("client_write_cpm"), {0: 9, 1: 6})
        self.assertEqual(client("client_write_total_bytes"), {0: 70, 1: 50})
        self.assertEqual(client("client_write_avg_exe_time"), {0: 200, 1: 50})
        self.assertEqual(client("client_write_avg_rtt_time"), {0: 7.5, 1: 9})
        self.assertEqual(client("client_connect_exe_time"), {0: 1.5, 1: 1.5})
        self.assertEqual(client("http1_request_cpm"), {0: 7, 1: 5})
        self.assertEqual(client("http1_response_status_cpm", "200"), {0: 7, 1: 5})
        self.assertEqual(client("http1_response_status_cpm", "500"), {0: 2, 1: 1})
        self.assertEqual(client("http1_client_duration"), {0: 200, 1: 50})
        ranks = {50: 0, 75: 5, 90: 10, 95: 10, 99: 10}
        self.assertEqual({p: client("http1_client_duration_percentile", p)[0] for p in ranks}, ranks)
        self.assertEqual(len(found), 9 + 5)
        units = {line["metric"]: line["unit"] for line in self.of_instance("NetworkSeries", "metrics")["lines"]}
        self.assertEqual(units["client_write_avg_rtt_time"], "us")
        self.assertEqual(units["client_write_avg_exe_time"], "ns")
        self.assertEqual(units["http1_client_duration_percentile"], "ms")
        call = process.process_id + "-" + agents.process_id("shop", "i-1", "UNKNOWN_REMOTE")
        one = self.points("metrics", callId=call, metrics=["process_relation_client_write_cpm"])
        self.assertEqual(one, {("client_write_cpm", "CLIENT", ""): {0: 9, 1: 6}})
        self.assertEqual(self.points("metrics", callId=call[65:] + "-" + call[:64]), {})
        self.assertEqual(self.points("strangers"), {})
        self.refused("there is no network metric", lambda: self.points("metrics", metrics=["x"]))
        self.refused("call_id", lambda: self.points("metrics", callId="x-y"))

    def test_a_repeated_flush_counts_once(self):
        network, process = self.start("twice")
        for at in (self.a, self.b):
            network.agent.server = at
            network.flush(network.value("server_read_counts_counter", 2, network.labels("local", process, "server")), at_ms=self.at)
        self.assertEqual(self.points("twice"), {("server_read_cpm", "SERVER", ""): {0: 2}})

    def test_bad_meters_are_refused_by_name_with_all_of_their_set(self):
        network, process = self.start("bad", "bad")
        labels = network.labels(process, "1.2.3.4:80")
        good = network.value("client_write_counts_counter", 1, labels)
        name = "client_read_counts_counter"

        def without(label):
            return {k: v for k, v in labels.items() if k != label}

        for part, meter in (
            ("side", network.value(name, 1, {**labels, "side": "left"})),
            ("server is neither", network.value(name, 1, without("server_address"))),
            ("client is neither", network.value(name, 1, without("client_process_id"))),
            ("hex digits", network.value(name, 1, {**labels, "client_process_id": "xyz"})),
            ("no amount", network.value(name, -1, labels)),
            ("no amount", network.value(name, 1e308, labels)),
            ("label code", network.value("http1_response_status_counter", 1, labels)),
            ("counts", network.histogram("client_read_exe_time_histogram", {1: -1}, labels)),
            ("has buckets", network.histogram(name, {1: 1}, labels)),
        ):
            self.refused(part, lambda: network.flush(good, meter, at_ms=self.at))
            self.refused("rover_net_p_", lambda: network.flush(good, meter, at_ms=self.at))
        self.refused("reject-newer-than", lambda: network.flush(good, at_ms=self.at + 10**9))
        self.refused("reject-older-than", lambda: network.flush(good, at_ms=1))
        self.assertEqual(self.points("bad", "bad"), {})

    # ---- sampled requests ----

    def capture(self, network, process, trace, **more):
        """A request of each kind, with its body and a system call."""
        end = "1.2.3.4:80"
        network.send_logs(
            network.sampled(trace + "-slow", process, end, "/slow?token=sesame&x=1", "slow", 300, at_ms=self.at, **more),
            network.sampled(trace + "-4", process, end, "/404", "status_4xx", 20, 404, at_ms=self.at, **more),
            network.sampled(trace + "-5", process, end, "/500", "status_5xx", 100, 500, at_ms=self.at, **more),
            network.log("hello", kind="OTHER"),
        )
        request = ("POST /pay?password=hunter2 HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer s3cr3t-token\r\n"
                   "Cookie: a=topsecretcookie\r\n\r\n{\"user\":\"ann\",\"Password\":\"hunter2\",\"card\":\"4111-1111\"}")
        network.send_events(
            network.event(trace + "-slow", "HTTP Request Sampling", {"data_content": request, "data_size": "1KiB", "token": "sesame"}, 2 * 10**18, 2 * 10**18 + 5),
            network.event(trace + "-slow", "Syscall write", {"package_size": "10", "http.request.header.authorization": "head-s3cret",
                                                             "har": "[{\"name\":\"Cookie\",\"value\":\"har-s3cret\"}]"}, 10**18, 10**18 + 1, named=False),
            network.event(trace + "-5", "HTTP Response Sampling", {"data_content": "x" * 5000}, 1, 2),
        )

    def test_sampled_requests_have_their_bodies_without_secrets(self):
        network, process = self.start("sampled")
        self.capture(network, process, "t")
        found = self.of_instance("ListSampledRequests", "sampled")["requests"]
        self.assertEqual(
            [(r["traceId"], r["reason"], r["latencyMs"], r["status"], r["uri"], r.get("eventCount", 0)) for r in found],
            [("t-slow", "slow", 300, 200, "/slow?token=[redacted]&x=1", 2), ("t-5", "status_5xx", 100, 500, "/500", 1),
             ("t-4", "status_4xx", 20, 404, "/404", 0)],
        )
        slow = found[0]
        self.assertEqual((slow["traceProvider"], slow["component"], slow["detectPoint"], slow["service"], slow["instance"]),
                         ("skywalking", "http", "CLIENT", "shop", "i-1"))
        by_trace = self.ask("ListSampledRequests", "sampled", traceId="t-5")["requests"]
        self.assertEqual([r["requestId"] for r in by_trace], [found[1]["requestId"]])
        only = self.of_instance("ListSampledRequests", "sampled", reason="status_4xx", limit=1)["requests"]
        self.assertEqual([r["traceId"] for r in only], ["t-4"])

        answer = self.ask("GetSampledRequest", "sampled", requestId=slow["requestId"])
        self.assertEqual(answer["request"], slow)
        self.assertEqual([e["event"] for e in answer["events"]], ["Syscall write", "HTTP Request Sampling"])
        tags = {t["key"]: t["value"] for t in answer["events"][1]["tags"]}
        self.assertEqual(
            tags["data_content"],
            "POST /pay?password=[redacted] HTTP/1.1\r\nHost: shop\r\nAuthorization: [redacted]\r\nCookie: [redacted]\r\n\r\n"
            "{\"user\":\"ann\",\"Password\":\"[redacted]\",\"card\":\"[redacted]\"}",
        )
        self.assertEqual((tags["token"], tags["data_size"]), ("[redacted]", "1KiB"))
        self.assertIn("8 values were redacted", answer["notes"][0])
        cut = self.ask("GetSampledRequest", "sampled", requestId=found[1]["requestId"])
        body = {t["key"]: t["value"] for t in cut["events"][0]["tags"]}["data_content"]
        self.assertTrue(body.startswith("x" * 2048 + " [max-captured-bytes: cut, 2048 of 5000"), body[2040:])
        self.assertIn("max-captured-bytes", cut["notes"][0])
        bare = self.ask("GetSampledRequest", "sampled", requestId=found[2]["requestId"])
        self.assertIn("nothing is captured", bare["notes"][0])
        # The relation of a sampled request is one of the topology.
        self.assertEqual(len(self.of_instance("Topology", "sampled")["calls"]), 1)
        self.refused("no sampled request", lambda: self.ask("GetSampledRequest", "strangers", requestId=slow["requestId"]), "not_found")
        self.assertEqual(self.ask("ListSampledRequests", "strangers", traceId="t-5"), {})
        self.assert_no_secret_is_stored()

    def assert_no_secret_is_stored(self):
        """In no table: not in text, and not in the packed tags."""
        dump = subprocess.run(
            [server.Cluster.program("pg_dump"), "--data-only", "--inserts", "-n", "hearth_data", self.cluster.url()],
            check=True, capture_output=True,
        ).stdout
        plain = bytes.fromhex("00")  # so that an empty list of tags would be noticed
        for (tags,) in self.a.sql("SELECT encode(tags, 'hex') FROM hearth_data.captured_event"):
            raw = bytes.fromhex(tags)
            if raw[0] != 0 and not has_zstd():
                continue
            plain += raw if raw[0] == 0 else subprocess.run(["zstd", "-dc"], input=raw[1:], capture_output=True, check=True).stdout
        self.assertIn(b"[redacted]", plain)
        for secret in SECRETS:
            self.assertNotIn(secret.encode(), dump, secret)
            self.assertNotIn(secret.encode(), plain, secret)

    def test_repeated_events_are_stored_once(self):
        network, process = self.start("again")
        days = []
        for at in (self.a, self.b):
            network.agent.server = at
            self.capture(network, process, "again")
            days.append(self.a.sql("SELECT sum(n_bytes), sum(n_dropped) FROM hearth_data.captured_day JOIN hearth_data.tenant"
                                   " USING (tenant_id) WHERE name = 'again'"))
        self.assertEqual(days[0], days[1])  # nor does it count again
        found = self.of_instance("ListSampledRequests", "again")["requests"]
        self.assertEqual([r.get("eventCount", 0) for r in found], [2, 1, 0])

    def test_bad_logs_and_events_are_refused(self):
        network, process = self.start("bad-logs")
        for part, message in (
            ("JSON", network.log("{", "t")),
            ("trace id", network.sampled("", process, "local")),
            ("reason", network.sampled("t", process, "local", reason="fast")),
            ("detect_point", network.sampled("t", process, "local", side="both")),
            ("trace_provider", network.sampled("t", process, "local", provider="x")),
            ("latency", network.sampled("t", process, "local", latency="long")),
            ("server is neither", network.sampled("t", process, "")),
        ):
            self.refused(part, lambda: network.send_logs(message))
        self.refused("belongs to no span", lambda: network.send_events([(2, "x")]))
        self.refused("trace id", lambda: network.send_events(network.event("", "x", {})))
        self.assertEqual(network.send_logs(), [])
        self.assertEqual(network.send_events(), [])
        self.refused("say a service or a trace_id", lambda: self.ask("ListSampledRequests", "bad-logs"))
        self.refused("hex digits", lambda: self.ask("GetSampledRequest", "bad-logs", requestId="x"))

    def test_spans_of_trace_tasks_have_their_events_without_bodies(self):
        headers = {"X-Scope-OrgID": "spans"}
        instance = Instance(self.a, "shop", "i-1", "spans")
        instance.report()
        network, _ = self.start("spans")
        request = {"kind": "TASK_KIND_TRACE", "service": "shop", "endpoint": "/pay", "durationMs": MINUTE, "dumpPeriodMs": 10, "maxSamples": 5}
        task_id = self.b.connect(tasks.TASKS + "CreateTask", request, headers)["task"]["taskId"]
        instance.query_tasks(Instance.TRACE)
        at = now_ms()
        instance.send_segments(instance.segment("trace-1", "seg-1", [
            agents.span(0, "/pay", at, at + 100), agents.span(1, "call", at, at + 50, parent=0, kind=agents.EXIT)]))
        instance.send_snapshots(*[agents.snapshot(task_id, "seg-1", i, at + 10 * i, ["A", "B"]) for i in range(3)])
        network.send_events(
            network.event("trace-1", "HTTP Request Sampling", {"data_content": "body", "data_size": "4B"}, 7, 9, "seg-1", "1"),
            network.event("trace-1", "Syscall write", {}, 1, 2, "seg-1", "7"),
        )
        (found,) = eventually(lambda: self.b.connect(tasks.TASKS + "ListSegments", {"taskId": task_id}, headers).get("segments"))
        events = [s.get("attachedEvents", []) for s in found["spans"]]
        self.assertEqual([len(e) for e in events], [0, 1])
        (event,) = events[1]
        self.assertEqual((event["event"], event["startNs"], event["endNs"]), ("HTTP Request Sampling", "7", "9"))
        self.assertEqual([t["key"] for t in event["tags"]], ["data_size", "service_name", "service_instance_name", "process_name"])

    # ---- the client ----

    def test_the_client_shows_topology_and_captured_requests(self):
        network, process = self.start("client")
        self.capture(network, process, "cli")
        network.flush(network.value("client_write_counts_counter", 5, network.labels(process, "1.2.3.4:80")), at_ms=self.at)

        def run(*arguments, code=0):
            url = "http://127.0.0.1:%d" % self.b.port
            ran = hearth("network", *arguments, "--tenant", "client", env={"HEARTH_URL": url})
            self.assertEqual(ran.code, code, ran.err)
            return ran.out

        of = ["--service", "shop", "--instance", "i-1", "--since", "1h"]
        table = run("topology", *of)
        self.assertRegex(table, r"service +-> UNKNOWN_REMOTE +CLIENT +http")
        self.assertIn("UNKNOWN_REMOTE: 1.2.3.4:80", table)
        dot = run("topology", *of, "--dot")
        self.assertIn('"%s" [label="service"];' % process.process_id, dot)
        self.assertIn('[label="UNKNOWN_REMOTE", style=dashed];', dot)
        self.assertIn('[label="http"];', dot)
        self.assertEqual(len(json.loads(run("topology", *of, "-o", "json"))["calls"]), 1)
        self.assertRegex(run("series", *of, "--metric", "client_write_cpm"), r"client_write_cpm +CLIENT +1/min +\S+Z 5\n")
        rows = run("requests", *of, "--no-headers").splitlines()
        self.assertEqual(run("requests", *of, "--no-headers", "--columns", "trace").split(), ["cli-slow", "cli-5", "cli-4"])
        self.assertEqual(len(run("requests", "--trace-id", "cli-5").splitlines()), 1 + 1)
        one = run("request", rows[0].split()[0])
        self.assertIn("    Authorization: [redacted]\n", one)
        self.assertIn("note: 8 values were redacted", one)
        self.assertIn("1.2.3.4", run("addresses", "1.2.3.4:80=db"))
        self.assertRegex(run("addresses"), r"10\.9\.9\.9 +network-addresses +configured\.db\n")
        run("topology", "--service", "shop", "--instance", "nobody", code=NO_DATA)
        run("nonsense", code=USAGE)

    # ---- a whole task ----

    def test_a_task_from_its_command_to_its_results(self):
        network, process = self.start("whole")
        rover = network.agent
        headers = {"X-Scope-OrgID": "whole"}
        rules = [{"minDurationMs": 100, "when4xx": True, "when5xx": True, "requireCompleteRequest": True, "maxRequestBytes": 1024}]
        request = {"kind": "TASK_KIND_NETWORK", "service": "shop", "instance": "i-1", "samplingRules": rules}
        task_id = self.b.connect(tasks.TASKS + "CreateTask", request, headers)["task"]["taskId"]
        (command,) = rover.query_tasks()
        self.assertEqual((command["TaskId"], command["TargetType"]), (task_id, "NETWORK"))
        self.assertTrue(json.loads(command["ExtensionConfigJSON"])["NetworkSamplings"][0]["When4xx"])
        get = lambda: self.b.connect(tasks.TASKS + "GetTask", {"taskId": task_id}, headers)
        before = json.dumps(get())
        at = now_ms()
        network.flush(network.value("client_write_counts_counter", 1, network.labels(process, "9.9.9.9:1")), at_ms=at)
        rover.query_tasks()  # the agent says that it has the task
        self.b.connect(tasks.TASKS + "KeepAliveTask", {"taskId": task_id}, headers)
        after = eventually(lambda: get() if json.dumps(get()) != before else None)
        self.assertEqual(after["task"]["state"], "TASK_STATE_RUNNING")
        (target,) = after["targets"]
        self.assertEqual(target["processId"], process.process_id)
        found = self.ask("Topology", "whole", service="shop", instance="i-1", startMs=at, endMs=at)
        self.assertEqual([n["name"] for n in found["nodes"]], ["service", "UNKNOWN_REMOTE"])
        with tempfile.NamedTemporaryFile() as archive:
            env = {"HEARTH_URL": "http://127.0.0.1:%d" % self.b.port, "HEARTH_TENANT": "whole"}
            exported = hearth("task", "export", task_id, archive.name, env=env)
            self.assertIn("note: topology and metrics of the network task are not included", exported.err)


class Captured(unittest.TestCase):
    def test_captured_requests_expire_and_have_a_limit_per_day(self):
        at = server.Server("--retain-captured", "4s", "--max-captured-day-bytes", "1k")
        self.addCleanup(at.stop)
        rover = Rover(at)
        process = Process("shop", "i-1", "service")
        rover.report(process)
        network = Network(rover, "shop", "i-1")
        network.send_logs(network.sampled("t", process, "1.2.3.4:80"))
        network.send_events(network.event("t", "Syscall read", {"package_size": "10"}, 1, 2))
        ask = lambda method, **request: at.connect(NETWORK + method, request)
        (found,) = ask("ListSampledRequests", traceId="t")["requests"]
        answer = ask("GetSampledRequest", requestId=found["requestId"])
        self.assertLessEqual(len(answer.get("events", [])), 1)
        eventually(lambda: at.sql("SELECT count(*) FROM hearth_data.captured_event") == [["0"]])
        left = ask("GetSampledRequest", requestId=found["requestId"])
        self.assertEqual(left.get("events", []), [])
        self.assertIn("retain-captured", left["notes"][0])
        body = "".join("%x" % (i * i * 2654435761 % 2**32) for i in range(1000))  # does not pack well
        network.send_events(network.event("t", "HTTP Request Sampling", {"data_content": body}, 1, 2))
        notes = ask("GetSampledRequest", requestId=found["requestId"])["notes"]
        self.assertEqual(at.sql("SELECT count(*) FROM hearth_data.captured_event"), [["0"]])
        self.assertIn("max-captured-day-bytes", " ".join(notes))


if __name__ == "__main__":
    unittest.main()
