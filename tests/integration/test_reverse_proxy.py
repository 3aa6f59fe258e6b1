"""The configuration of docs/how-to/reverse-proxy.md in a real nginx, which ends TLS: gRPC, streams, HTTP, log-ins, addresses.

It runs where nginx is installed, and says so where it is not.
"""

import atexit
import copy
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import time
import unittest

import agents
import certificates
import grpc
import wire
from citus_nodes import free_port
from pprof import Decoded, Profile
from questions import CPU
from server import RpcError, eventually, note, now_ms, temporary_directory
from test_access import PASSWORD, AccessServer
from test_cli import hearth

NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
DOC = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "reverse-proxy.md"
CLIENT = "127.0.0.5"
if not NGINX:
    note("nginx is not installed: Hearth behind a reverse proxy was NOT tried")


class Nginx:
    """nginx with the block of the document, at a port of its own, in front of a server."""

    def __init__(self, server):
        self.directory = temporary_directory()
        ca = certificates.Authority(self.directory, "ca")
        cert, key = ca.sign("server", "/CN=localhost")
        self.ca, self.port = ca.file, free_port()
        block = re.search(r"```nginx\n(.*?)```", DOC.read_text(), re.DOTALL).group(1)
        for wanted, here in (
            ("listen 443 ", "listen 127.0.0.1:%d " % self.port), ("127.0.0.1:4040", "127.0.0.1:%d" % server.port),
            ("/etc/nginx/hearth.pem", cert), ("/etc/nginx/hearth.key", key), ("hearth.example", "localhost"),
        ):
            assert wanted in block, wanted
            block = block.replace(wanted, here)
        paths = "".join(
            "%s_temp_path %s/%s;\n" % (kind, self.directory, kind)
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = pathlib.Path(self.directory) / "nginx.conf"
        config.write_text(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log;\nevents {}\n"
            "http {\naccess_log off;\n%s%s}\n" % (paths, block)
        )
        self.process = subprocess.Popen([NGINX, "-p", self.directory, "-c", str(config), "-e", "error.log"])
        atexit.register(self.process.kill)
        eventually(lambda: self.process.poll() is None and self.connects(), what="nginx")

    def connects(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except ConnectionRefusedError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def in_front_of(self, server):
        """The server, with calls of gRPC through nginx."""
        through = copy.copy(server)
        credentials = grpc.ssl_channel_credentials(pathlib.Path(self.ca).read_bytes())
        unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        through.channel = grpc.secure_channel("localhost:%d" % self.port, credentials, options=unlimited)
        return through

    def http(self, method, path, body=None, headers=None):
        """From an address of its own."""
        context = ssl.create_default_context(cafile=self.ca)
        connection = http.client.HTTPSConnection(
            "localhost", self.port, context=context, source_address=(CLIENT, 0), timeout=60
        )
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def post(self, path, message, headers=None):
        status, head, body = self.http(
            "POST", path, json.dumps(message).encode(), {"Content-Type": "application/json", **(headers or {})}
        )
        return status, head, json.loads(body or b"{}")


@unittest.skipUnless(NGINX, "nginx is not installed")
class ReverseProxy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.access = AccessServer("--proxy-trusted", "127.0.0.1")
        cls.nginx = Nginx(cls.access.server)
        cls.through = cls.nginx.in_front_of(cls.access.server)
        cls.token = cls.access.token(("red", "admin"))["token"]
        cls.url = "https://localhost:%d" % cls.nginx.port
        cls.metadata = [("authorization", "Bearer " + cls.token), ("x-scope-orgid", "red")]
        cls.headers = {"Authorization": "Bearer " + cls.token, "X-Scope-OrgID": "red"}

    @classmethod
    def tearDownClass(cls):
        cls.through.channel.close()
        cls.nginx.stop()
        cls.access.stop()

    def profile(self, stacks=1):
        p = Profile([("samples", "count"), ("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000)
        for i in range(stacks):
            p.add(["main", "function-%d" % i], [1, 10])
        return p

    def push(self, service, stacks=1):
        labels = {"__name__": "process_cpu", "service_name": service}
        self.through.push(self.profile(stacks).encode(), labels, metadata=self.metadata)

    def total(self, service):
        end = now_ms() + 60_000
        answer = self.through.merge_pprof(
            CPU, '{service_name="%s"}' % service, end - 3_600_000, end, self.metadata, max_nodes=1 << 20
        )
        return sum(values[0] for _, values, _ in Decoded(answer).samples)

    def test_profiles_go_in_and_out_over_grpc_also_large_ones(self):
        self.push("grpc-small")
        self.push("grpc-large", 60_000)  # more than a megabyte, which nginx allows by default
        self.assertEqual(self.total("grpc-small"), 10)
        self.assertEqual(self.total("grpc-large"), 600_000)

    def test_errors_of_grpc_keep_their_code_and_text(self):
        with self.assertRaises(RpcError) as caught:
            self.through.merge_pprof(CPU, "{service_name=", 1, 2, self.metadata)
        self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertIn("expected a quoted string", str(caught.exception))
        with self.assertRaises(RpcError) as caught:
            self.through.merge_pprof(CPU, "{}", 0, 1)
        self.assertEqual(caught.exception.code, "unauthenticated")

    def test_a_quiet_stream_of_an_agent_may_be_long(self):
        instance = agents.Instance(self.through, "shop", "shop-1", "red", metadata=self.metadata[:1])

        def segments():
            for i in range(4_000):
                at = now_ms()
                spans = [agents.span(0, "/pay/%0500d" % i, at, at + 400)]
                yield wire.encode(instance.segment("trace-%d" % i, "segment-%d" % i, spans))
                if i == 2_000:
                    time.sleep(3)

        stored = lambda: int(self.access.server.sql("SELECT coalesce(sum(n_spans), 0) FROM hearth_data.span_group")[0][0])
        before = stored()
        self.through.stream_unary(instance.SEGMENTS + "collect", segments(), instance.metadata)
        eventually(lambda: stored() == before + 4_000, what="all spans")

    def test_http_works_beside_grpc(self):
        body = self.profile(60_000).encode(compress=False)
        status, _, answer = self.nginx.http("POST", "/ingest?name=http&format=pprof", body, self.headers)
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.total("http"), 600_000)
        render = "/pyroscope/render?query=" + CPU + "%7Bservice_name%3D%22http%22%7D&from=now-1h&until=now&max-nodes=100000"
        status, _, answer = self.nginx.http("GET", render, headers=self.headers)
        self.assertEqual(status, 200, answer[:300])
        self.assertEqual(json.loads(answer)["flamebearer"]["numTicks"], 600_000)
        status, head, _ = self.nginx.http("GET", "/", headers={"Accept": "text/html"})
        self.assertEqual((status, head["content-type"].split(";")[0]), (200, "text/html"))

    def test_the_client_is_given_the_address_of_nginx(self):
        self.push("cli")
        env = {"HEARTH_TOKEN": self.token}
        ran = hearth("query", "services", "--url", self.url, "--ca-file", self.nginx.ca, "--tenant", "red", env=env)
        self.assertEqual(ran.code, 0, ran.err)
        self.assertIn("cli", ran.out)

    def test_a_person_logs_in_with_a_secure_cookie_and_is_known_by_the_own_address(self):
        self.access.must("CreateUser", {"name": "alice", "password": PASSWORD})
        self.access.must("AddGrant", {"subject": "user:alice", "tenant": "red", "role": "viewer"})
        origin = {"Origin": self.url}
        status, head, _ = self.nginx.post("/api/v1/login", {"user": "alice", "password": PASSWORD}, origin)
        self.assertEqual(status, 200)
        cookie = head["set-cookie"]
        self.assertTrue(cookie.startswith("__Host-hearth_session=") and cookie.endswith("; Secure"), cookie)
        with_cookie = {"Cookie": cookie.split(";")[0], "X-Scope-OrgID": "red"}
        types = "/querier.v1.QuerierService/ProfileTypes"
        self.assertEqual(self.nginx.post(types, {}, {**with_cookie, **origin})[0], 200)
        self.assertEqual(self.nginx.post(types, {}, {**with_cookie, "Origin": "https://evil.example"})[0], 403)
        events = lambda: self.access.must("AuditLog", {"subject": "user:alice", "action": "login"}).get("events", [])
        self.assertEqual(eventually(events, what="the log-in in the audit log")[0]["address"], CLIENT)


if __name__ == "__main__":
    unittest.main()
