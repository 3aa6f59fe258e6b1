"""Who may call the methods of SkyWalking's agents, by which names, and what an operator switches off."""

import json
import re
import subprocess
import unittest

import grpc

import server
from server import HEARTHD, ROOT

NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nothing"
JSON = {"Content-Type": "application/json"}
UNARY, STREAM, BOTH = "unary_unary", "stream_unary", "stream_stream"
UNIMPLEMENTED, UNAUTHENTICATED = grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNAUTHENTICATED

# The public protocol: (service, method, kind, the option that switches it off).
TABLE = [
    ("skywalking.v3.EBPFProcessService", "reportProcesses", UNARY, "agent-processes"),
    ("skywalking.v3.EBPFProcessService", "keepAlive", UNARY, "agent-processes"),
    ("skywalking.v3.EBPFProfilingService", "queryTasks", UNARY, "agent-ebpf"),
    ("skywalking.v3.EBPFProfilingService", "collectProfilingData", STREAM, "agent-ebpf"),
    ("skywalking.v3.ContinuousProfilingService", "queryPolicies", UNARY, "agent-policies"),
    ("skywalking.v3.ContinuousProfilingService", "reportProfilingTask", UNARY, "agent-policies"),
    ("skywalking.v3.ProfileTask", "getProfileTaskCommands", UNARY, "agent-trace-profiling"),
    ("skywalking.v3.ProfileTask", "collectSnapshot", STREAM, "agent-trace-profiling"),
    ("skywalking.v3.ProfileTask", "goProfileReport", STREAM, "agent-trace-profiling"),
    ("skywalking.v3.ProfileTask", "reportTaskFinish", UNARY, "agent-trace-profiling"),
    ("skywalking.v10.AsyncProfilerTask", "collect", BOTH, "agent-async-profiler"),
    ("skywalking.v10.AsyncProfilerTask", "getAsyncProfilerTaskCommands", UNARY, "agent-async-profiler"),
    ("skywalking.v10.PprofTask", "collect", BOTH, "agent-pprof"),
    ("skywalking.v10.PprofTask", "getPprofTaskCommands", UNARY, "agent-pprof"),
    ("skywalking.v3.ManagementService", "reportInstanceProperties", UNARY, "agent-management"),
    ("skywalking.v3.ManagementService", "keepAlive", UNARY, "agent-management"),
    ("skywalking.v3.MeterReportService", "collect", STREAM, "agent-meters"),
    ("skywalking.v3.MeterReportService", "collectBatch", STREAM, "agent-meters"),
    ("skywalking.v3.LogReportService", "collect", STREAM, "agent-logs"),
    ("skywalking.v3.SpanAttachedEventReportService", "collect", STREAM, "agent-logs"),
    ("skywalking.v3.TraceSegmentReportService", "collect", STREAM, "agent-segments"),
    ("skywalking.v3.TraceSegmentReportService", "collectInSync", UNARY, "agent-segments"),
    ("skywalking.v3.EventService", "collect", STREAM, "agent-management"),
    ("skywalking.v3.JVMMetricReportService", "collect", UNARY, "agent-management"),
    ("skywalking.v3.ConfigurationDiscoveryService", "fetchConfigurations", UNARY, "agent-management"),
    ("skywalking.v3.EBPFAccessLogService", "collect", STREAM, "agent-management"),
]
PACKAGES = {"skywalking.v3": True, "skywalking.v10": False}  # whether their services had names without a package


def offered():
    """The rows of TABLE that are in methods.def."""
    text = (ROOT / "server/front/methods.def").read_text()
    there = set(re.findall(r'^(?:X|UNARY)\([A-Z0-9_]+, "(skywalking[\w.]+)", "(\w+)"', text, re.M))
    return [row for row in TABLE if row[:2] in there]


def ask(channel, path, kind, message=None, metadata=None):
    """(code, details) of a call with that message, or with none at all where the client streams."""
    messages = [] if message is None else [message]
    call = getattr(channel, kind)(path)
    try:
        answer = call(message or b"" if kind == UNARY else iter(messages), timeout=20, metadata=metadata or [])
        if kind == BOTH:
            list(answer)
    except grpc.RpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, ""


def no_database(*options):
    return server.Server(*options, database_url=NO_DATABASE, wait=False)


class Table(unittest.TestCase):
    def test_every_method_of_the_protocol_is_served_and_no_other(self):
        text = (ROOT / "server/front/methods.def").read_text()
        rows = re.findall(r'^(?:X|UNARY)\([A-Z0-9_]+, "(skywalking[\w.]+)", "(\w+)", .*, ([A-Z_| ]+)\)$', text, re.M)
        kinds = {(False, False): UNARY, (True, False): STREAM, (True, True): BOTH}
        found = {(s, m): kinds["METHOD_COLLECT" in flags, "METHOD_STREAM" in flags] for s, m, flags in rows}
        self.assertEqual(found, {(service, method): kind for service, method, kind, _ in TABLE})


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = no_database()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_full_and_bare_names_of_methods_are_served(self):
        for service, method, kind, _ in offered():
            package, name = service.rsplit(".", 1)
            with self.subTest(service=service, method=method):
                full = ask(self.server.channel, "/%s/%s" % (service, method), kind)
                self.assertNotIn(full[0], (UNIMPLEMENTED, grpc.StatusCode.UNKNOWN), full)
                bare = ask(self.server.channel, "/%s/%s" % (name, method), kind)
                if PACKAGES[package]:
                    self.assertEqual(bare, full)
                else:
                    self.assertEqual(bare[0], UNIMPLEMENTED)

    def test_bare_names_are_served_over_http_and_counted_under_the_full_ones(self):
        for path in ("JVMMetricReportService/collect", "skywalking.v3.JVMMetricReportService/collect"):
            status, _, body = self.server.http("POST", "/" + path, b"{}", JSON)
            self.assertEqual((status, json.loads(body)), (200, {}))
        counts = [l for l in self.server.http("GET", "/metrics")[2].decode().splitlines() if "JVMMetricReportService" in l]
        self.assertEqual({re.search(r'method="([^"]+)"', l).group(1) for l in counts}, {"skywalking.v3.JVMMetricReportService/collect"})

    def test_requests_with_the_bytes_of_old_agents_are_read(self):
        """fetchConfigurations: service = 1, uuid = 2, as an agent of 8.x writes it."""
        code = ask(self.server.channel, "/ConfigurationDiscoveryService/fetchConfigurations", UNARY, b"\x0a\x04shop\x12\x00")
        self.assertEqual(code[0], grpc.StatusCode.OK)
        code = ask(self.server.channel, "/EventService/collect", STREAM, b"\x0a\x01u\x12\x06\x0a\x04shop\x1a\x05Start\x38\x01")
        self.assertEqual(code[0], grpc.StatusCode.OK)

    def test_other_methods_are_not_found_without_their_package(self):
        for path in ("/PusherService/Push", "/EventService/nope", "/EventService/", "//collect", "/Health/Check"):
            self.assertEqual(ask(self.server.channel, path, UNARY)[0], UNIMPLEMENTED, path)


class Token(unittest.TestCase):
    TOKEN = "a long-kept secret"

    @classmethod
    def setUpClass(cls):
        cls.server = server.Server(env={"HEARTH_AGENT_TOKEN": cls.TOKEN}, database_url=NO_DATABASE, wait=False)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_every_method_of_agents_requires_the_token(self):
        for service, method, kind, _ in offered():
            path = "/%s/%s" % (service, method)
            for value in (None, "", "a long-kept secre", "a long-kept secret!", "Bearer a long-kept secret"):
                metadata = [] if value is None else [("authentication", value)]
                with self.subTest(method=path, value=value):
                    code, text = ask(self.server.channel, path, kind, metadata=metadata)
                    self.assertEqual(code, UNAUTHENTICATED, text)
                    self.assertIn("authentication", text)
                    self.assertNotIn("long-kept", text)
            with self.subTest(method=path):
                code, text = ask(self.server.channel, path, kind, metadata=[("authentication", self.TOKEN)])
                self.assertNotIn(code, (UNAUTHENTICATED, UNIMPLEMENTED), text)

    def test_methods_of_agents_require_the_token_over_http(self):
        path = "/skywalking.v3.JVMMetricReportService/collect"
        for headers, status in (({}, 401), ({"Authentication": "x"}, 401), ({"Authentication": self.TOKEN}, 200)):
            self.assertEqual(self.server.http("POST", path, b"{}", {**JSON, **headers})[0], status)

    def test_methods_of_clients_need_no_agent_token(self):
        self.assertEqual(ask(self.server.channel, "/version.v1.Version/Version", UNARY)[0], grpc.StatusCode.OK)

    def test_the_token_is_shown_nowhere(self):
        status, _, body = self.server.http("GET", "/api/v1/status/config")
        self.assertEqual(status, 200)
        self.assertIn('agent-token: "***"', body.decode())
        self.assertNotIn("long-kept", body.decode() + self.server.log())


class Tenant(unittest.TestCase):
    def test_agents_without_a_tenant_get_the_tenant_of_the_option(self):
        one = no_database("--multitenancy", "--agent-tenant", "agents", "--log-level", "debug")
        path = "/skywalking.v3.JVMMetricReportService/collect"
        for metadata in ([], [("x-scope-orgid", "shop")]):
            self.assertEqual(ask(one.channel, path, UNARY, metadata=metadata)[0], grpc.StatusCode.OK)
        self.assertEqual(ask(one.channel, path, UNARY, metadata=[("x-scope-orgid", "a|b")])[0], grpc.StatusCode.INVALID_ARGUMENT)
        tenants = re.findall(r"JVMMetricReportService/collect .*tenant=(\S*) .*code=ok", one.log())
        self.assertEqual(tenants, ["agents", "shop"])
        one.stop()

    def test_without_the_option_agents_must_name_their_tenant(self):
        one = no_database("--multitenancy", "--agent-tenant", "")
        code, text = ask(one.channel, "/skywalking.v3.EventService/collect", STREAM)
        self.assertEqual((code, text), (UNAUTHENTICATED, "no org id"))
        one.stop()

    def test_an_invalid_agent_tenant_is_refused_at_the_start(self):
        for options, part in ((["--agent-tenant", "agents"], "multitenancy"), (["--multitenancy", "--agent-tenant", "a b"], "agent-tenant")):
            done = subprocess.run(
                [HEARTHD, "--listen", "127.0.0.1:0", "--database-url", NO_DATABASE, *options],
                capture_output=True, text=True, timeout=30, env=server.server_environment(),
            )
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(part, done.stderr + done.stdout)


class Families(unittest.TestCase):
    def test_each_option_switches_off_its_methods_alone(self):
        for option in sorted({row[3] for row in TABLE}):
            one = no_database("--" + option + "=false")
            for service, method, kind, own in offered():
                with self.subTest(off=option, service=service, method=method):
                    code, text = ask(one.channel, "/%s/%s" % (service, method), kind)
                    if own == option:
                        self.assertEqual(code, UNIMPLEMENTED, text)
                        self.assertIn("(%s)" % option, text)
                    else:
                        self.assertNotEqual(code, UNIMPLEMENTED, text)
            one.stop()

    def test_each_option_switches_off_old_names_too(self):
        one = no_database("--agent-management=false")
        for path, kind in (("/EventService/collect", STREAM), ("/JVMMetricReportService/collect", UNARY)):
            self.assertEqual(ask(one.channel, path, kind)[0], UNIMPLEMENTED)
        one.stop()


if __name__ == "__main__":
    unittest.main()
