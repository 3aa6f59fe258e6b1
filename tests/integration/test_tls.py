"""TLS in front of gRPC and HTTP: protocols, clients, certificates, reload, hostile clients, the stop."""

import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest

import grpc

import certificates
import pprof
import prometheus
import wire
from server import (
    HEARTH, HEARTHD, PUSH, Cluster, Server, eventually, in_threads, now_ms, server_environment, temporary_directory,
    unless_sanitized,
)

HEALTH = "/grpc.health.v1.Health/Check"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


class TlsServer(Server):
    """A server with a plain and a TLS listener."""

    def __init__(self, cert, key, *options, **more):
        super().__init__("--listen", "https://127.0.0.1:0", "--tls-cert-file", cert, "--tls-key-file", key, *options, **more)
        self.tls_port = int(re.search(r"addr=127\.0\.0\.1:(\d+) scheme=https", self.log()).group(1))

    def secure_channel(self, ca, cert=None, key=None):
        parts = [pathlib.Path(path).read_bytes() if path else None for path in (ca, key, cert)]
        return grpc.secure_channel(
            "localhost:%d" % self.tls_port, grpc.ssl_channel_credentials(*parts),
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)])

    def https(self, method, path, ca, body=None, headers=None, cert=None, timeout=60):
        context = ssl.create_default_context(cafile=ca)
        if cert:
            context.load_cert_chain(*cert)
        connection = http.client.HTTPSConnection("localhost", self.tls_port, context=context, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def failures(self, reason):
        return prometheus.value(self.metrics(), "hearth_tls_handshake_failures_total", reason=reason)


def client(ca, *more):
    context = ssl.create_default_context(cafile=ca)
    for protocol in more:
        context.set_alpn_protocols(protocol)
    return context


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = temporary_directory()
        cls.ca = certificates.Authority(cls.directory, "ca")
        cls.cert, cls.key = cls.ca.sign("server", "/CN=localhost")
        cls.server = TlsServer(cls.cert, cls.key, "--log-level", "debug", "--http-idle-timeout", "60s")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def openssl(self, *options):
        done = subprocess.run(
            ["openssl", "s_client", "-connect", "127.0.0.1:%d" % self.server.tls_port, "-CAfile", self.ca.file, *options],
            input="", capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def connect(self, *protocols):
        raw = socket.create_connection(("127.0.0.1", self.server.tls_port), 30)
        context = ssl.create_default_context(cafile=self.ca.file)
        if protocols:
            context.set_alpn_protocols(protocols)
        return context.wrap_socket(raw, server_hostname="localhost")

    # ---- protocols ----

    def test_versions_and_suites_are_modern(self):
        for version in ("-tls1_2", "-tls1_3"):
            code, said = self.openssl(version)
            self.assertEqual(code, 0, said)
            self.assertIn("Verify return code: 0 (ok)", said)
            self.assertIn("Compression: NONE", said)
        code, said = self.openssl("-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
        self.assertNotEqual(code, 0, said)
        for suite in ("AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384", "DHE-RSA-AES128-GCM-SHA256", "NULL"):
            code, said = self.openssl("-tls1_2", "-cipher", suite + ":@SECLEVEL=0")
            self.assertNotEqual(code, 0, suite)
        code, said = self.openssl("-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305")
        self.assertEqual(code, 0, said)

    def test_renegotiation_is_refused(self):
        process = subprocess.Popen(
            ["openssl", "s_client", "-tls1_2", "-connect", "127.0.0.1:%d" % self.server.tls_port, "-CAfile", self.ca.file],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said, _ = process.communicate("R\n", timeout=60)
        self.assertIn("no renegotiation", said)

    def test_http2_is_chosen_only_for_clients_that_speak_only_http2(self):
        for offered, chosen in ((("h2",), "h2"), (("grpc-exp", "h2"), "h2"), (("h2", "http/1.1"), "http/1.1"),
                                (("http/1.1",), "http/1.1"), (("spdy/3",), None), ((), None)):
            with self.connect(*offered) as connection:
                self.assertEqual(connection.selected_alpn_protocol(), chosen, offered)

    def test_curl_gets_http1_even_if_it_offers_http2(self):
        for options in ([], ["--http1.1"], ["--http2"], ["--no-alpn"], ["--tls-max", "1.2"]):
            done = subprocess.run(
                ["curl", "-sS", "--cacert", self.ca.file, "-w", " %{http_version} %{http_code}", *options,
                 "https://localhost:%d/healthz" % self.server.tls_port], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n 1.1 200"), (options, done.stderr))

    def test_a_session_is_resumed_by_a_ticket(self):
        file = os.path.join(self.directory, "session")
        self.openssl("-tls1_2", "-sess_out", file)
        code, said = self.openssl("-tls1_2", "-sess_in", file)
        self.assertEqual(code, 0, said)
        self.assertIn("Reused", said)

    # ---- clients ----

    def test_grpc_pushes_and_queries_are_served_over_tls(self):
        channel = self.server.secure_channel(self.ca.file)
        self.assertEqual(channel.unary_unary(HEALTH)(b"", timeout=60), b"\x08\x01")
        before = now_ms()
        profile = pprof.Profile([("cpu", "nanoseconds")], time_ns=time.time_ns())
        profile.add(["main", "tls"], [10])
        pairs = [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, "tls-grpc")])]
        channel.unary_unary("/" + PUSH)(wire.encode([(1, pairs + [(2, [(1, profile.encode())])])]), timeout=60)
        request = wire.encode([(1, CPU), (2, '{service_name="tls-grpc"}'), (3, before - 60000), (4, now_ms() + 60000)])
        plain = self.server.grpc_bytes("querier.v1.QuerierService/SelectMergeProfile", request)[0]
        self.assertGreater(len(plain), 50)
        secure = channel.unary_unary("/querier.v1.QuerierService/SelectMergeProfile")(request, timeout=60)
        self.assertEqual(plain, secure)
        channel.close()

    def test_the_log_has_the_address_of_the_client(self):
        with self.connect("http/1.1") as connection:
            address = "%s:%d" % connection.getsockname()
            connection.sendall(b"POST /querier.v1.QuerierService/Nothing HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                               b"Content-Length: 2\r\n\r\n{}")
            self.assertIn(b"HTTP/1.1 404", connection.recv(1000))
            connection.sendall(b"POST /querier.v1.QuerierService/LabelNames HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                               b"Content-Length: 14\r\n\r\n{\"start\": true")
            self.assertIn(b"HTTP/1.1 400", connection.recv(1000))
        eventually(lambda: "peer=" + address in self.server.log(), what="a line with the client's address")

    def test_hearth_speaks_tls(self):
        def run(*options, env=None):
            done = subprocess.run([HEARTH, "admin", "status", "--url", "https://localhost:%d" % self.server.tls_port, *options],
                                  capture_output=True, text=True, timeout=60, env=server_environment(env))
            return done.returncode, done.stdout + done.stderr
        self.assertEqual(run("--ca-file", self.ca.file)[0], 0)
        self.assertEqual(run(env={"HEARTH_CA_FILE": self.ca.file})[0], 0)
        self.assertEqual(run("--insecure-skip-verify")[0], 0)
        # The error is one line, without the lines that gRPC would write before it.
        self.assertRegex(run("--timeout", "5s")[1], r"\Ahearth: cannot reach localhost:\d+: .*certificate verify failed; "
                         r"--ca-file names the authority of the server's certificate\n\Z")
        self.assertRegex(run("--url", "http://localhost:%d" % self.server.tls_port)[1],
                         r"\Ahearth: cannot reach .*; if the port speaks TLS, the URL begins with https://\n\Z")
        code, said = run("--url", "https://localhost:%d" % self.server.port)
        self.assertRegex(said, r"\Ahearth: cannot reach .*; is hearthd there, and TLS only if the URL begins with https://\?\n\Z")
        self.assertEqual(code, 5)
        for options, part in ((["--ca-file", "/nowhere"], "/nowhere: No such file"), (["--cert-file", self.cert], "needs its key"),
                              (["--url", "http://localhost:1", "--ca-file", self.ca.file], "certificates are for https://")):
            code, said = run(*options)
            self.assertEqual(code, 2, said)
            self.assertIn(part, said)

    # ---- large bodies ----

    def test_30_mib_up_and_a_large_answer_down_keep_their_bytes(self):
        name = os.urandom(8).hex()
        block = hashlib.sha256(name.encode()).hexdigest()
        # Few stack traces with long names: much to carry, little to decode.
        lines = [("main;f%d;%s 1\n" % (i, block * 9)).encode() for i in range(50_000)]
        body = b"".join(lines)
        self.assertGreater(len(body), 29_000_000)
        for way, port in (("plain", None), ("tls", self.ca.file)):
            path = "/ingest?name=%s-%s&format=folded" % (name, way)
            if port is None:
                status, _, said = self.server.http("POST", path, body, timeout=300)
            else:
                status, said = self.server.https("POST", path, self.ca.file, body, timeout=300)
            self.assertEqual(status, 200, said)

        channel = self.server.secure_channel(self.ca.file)
        request = wire.encode(
            [(1, CPU), (2, '{service_name="%s-tls"}' % name), (3, now_ms() - 600_000), (4, now_ms() + 60_000)])
        method = "querier.v1.QuerierService/SelectMergeProfile"
        plain = self.server.grpc_bytes(method, request, timeout=300)[0]
        self.assertGreater(len(plain), 2 << 20)
        self.assertEqual(hashlib.sha256(plain).digest(), hashlib.sha256(channel.unary_unary("/" + method)(request, timeout=300)).digest())
        headers = {"Content-Type": "application/proto"}
        by_http = self.server.https("POST", "/" + method, self.ca.file, request, headers, timeout=300)[1]
        self.assertEqual(hashlib.sha256(plain).digest(), hashlib.sha256(by_http).digest())
        channel.close()

    def test_a_slow_reader_gets_the_whole_answer(self):
        body = self.server.http("GET", "/metrics")[2]
        with self.connect("http/1.1") as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            got = b""
            while True:
                part = connection.recv(512)
                if not part:
                    break
                got += part
                time.sleep(0.001)
        self.assertIn(b"hearth_tls_connections", got)
        self.assertGreater(len(got), len(body) // 2)
        self.assertTrue(got.endswith(b"\n"))

    def test_an_early_answer_is_read_by_a_client_that_still_sends(self):
        with self.connect("http/1.1") as connection:
            connection.sendall(b"POST /ingest?name=x HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n")
            try:
                for _ in range(64):
                    connection.sendall(b"x" * 16384)
            except (ssl.SSLError, OSError):
                pass
            self.assertIn(b"HTTP/1.1 4", connection.recv(4096))

    # ---- wrong and hostile clients ----

    def test_http_on_the_tls_port_is_answered(self):
        for body in (b"", b"x" * 100_000):
            with socket.create_connection(("127.0.0.1", self.server.tls_port), 30) as connection:
                connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                said = b"".join(iter(lambda: connection.recv(4096), b""))
            head, _, error = said.partition(b"\r\n\r\n")
            self.assertTrue(head.startswith(b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"), head)
            self.assertIn(b"\r\nContent-Length: %d\r\n" % len(error), head)
            self.assertEqual(
                json.loads(error), {"code": "failed_precondition", "message": "This port speaks TLS; use https:// and retry"})

    def test_tls_on_the_plain_port_is_logged(self):
        with socket.create_connection(("127.0.0.1", self.server.port), 30) as raw:
            with self.assertRaises(OSError):
                client(self.ca.file).wrap_socket(raw, server_hostname="localhost")
        eventually(lambda: "began with TLS on a port without it" in self.server.log())

    def test_garbage_ends_the_handshake(self):
        before = self.server.failures("protocol")
        for garbage in (b"\x00" * 100, b"\xff\x16\x03", b"\x16\x03\x01\x00\x05\xff\xff\xff\xff\xff", b"\x16\x03\x01\x40\x00" + b"\x99" * 16384):
            with socket.create_connection(("127.0.0.1", self.server.tls_port), 30) as connection:
                connection.sendall(garbage)
                while True:
                    try:
                        if not connection.recv(4096):
                            break
                    except ConnectionResetError:
                        break
        eventually(lambda: self.server.failures("protocol") + self.server.failures("other") >= before + 4)

    def test_a_huge_hello_is_refused(self):
        # Records of one handshake message that says it has 128 KiB.
        message = b"\x01\x01\xff\xff\x03\x03" + os.urandom(131065)
        with socket.create_connection(("127.0.0.1", self.server.tls_port), 30) as connection:
            try:
                for at in range(0, len(message), 16384):
                    part = message[at : at + 16384]
                    connection.sendall(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part)
                while connection.recv(4096):
                    pass
            except (ConnectionResetError, BrokenPipeError):
                pass
        eventually(lambda: self.server.failures("size") >= 1)

    def test_clients_killed_in_mid_body_leave_nothing_behind(self):
        def count():
            return prometheus.value(self.server.metrics(), "hearth_tls_connections")

        def half():
            connection = self.connect("http/1.1")
            connection.sendall(b"POST /ingest?name=x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 5000)
            # A reset, as of a process that was killed with unread bytes.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            socket.socket(fileno=connection.detach()).close()
        descriptors = len(os.listdir("/proc/%d/fd" % self.server.process.pid))
        in_threads([lambda: [half() for _ in range(20)]] * 5)
        eventually(lambda: len(os.listdir("/proc/%d/fd" % self.server.process.pid)) <= descriptors + 10, what="closed descriptors")
        eventually(lambda: count() <= 10)


class Files(unittest.TestCase):
    """Certificates of clients, and certificates that change."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.directory = temporary_directory()
        cls.ca = certificates.Authority(cls.directory, "ca")
        cls.other = certificates.Authority(cls.directory, "other")
        cls.cert, cls.key = cls.ca.sign("server", "/CN=localhost", kind="rsa")
        cls.agent = cls.ca.sign("agent", "/O=Shop/CN=agent", "URI:spiffe://shop/agent,DNS:agent.shop,email:a@shop.example")
        cls.stranger = cls.other.sign("stranger", "/CN=stranger")

    def start(self, *options, **more):
        server = TlsServer(self.cert, self.key, *options, database_url=self.cluster.url(), **more)
        self.addCleanup(server.kill)
        return server

    def check(self, server, files=(None, None)):
        channel = server.secure_channel(self.ca.file, *files)
        try:
            return channel.unary_unary(HEALTH)(b"", timeout=10)
        except grpc.RpcError as error:
            return error.code()
        finally:
            channel.close()

    def test_clients_without_a_required_certificate_are_refused(self):
        server = self.start("--tls-client-auth", "require", "--tls-client-ca-file", self.ca.file)
        self.assertEqual(self.check(server, self.agent), b"\x08\x01")
        self.assertEqual(self.check(server), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(self.check(server, self.stranger), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(server.https("GET", "/healthz", self.ca.file, cert=self.agent)[0], 200)
        with self.assertRaises(OSError):
            server.https("GET", "/healthz", self.ca.file)
        eventually(lambda: server.failures("certificate") >= 3)
        done = subprocess.run([HEARTH, "admin", "status", "--url", "https://localhost:%d" % server.tls_port, "--ca-file", self.ca.file,
                               "--cert-file", self.agent[0], "--key-file", self.agent[1]], capture_output=True, text=True,
                              env=server_environment(), timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        server.stop()

    def test_clients_may_lack_a_requested_certificate(self):
        server = self.start("--tls-client-auth", "request", "--tls-client-ca-file", self.ca.file, "--tls-min-version", "1.3")
        self.assertEqual(self.check(server, self.agent), b"\x08\x01")
        self.assertEqual(self.check(server), b"\x08\x01")
        self.assertEqual(self.check(server, self.stranger), grpc.StatusCode.UNAVAILABLE)
        old = client(self.ca.file)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection(("127.0.0.1", server.tls_port), 30) as raw, self.assertRaises(ssl.SSLError):
            old.wrap_socket(raw, server_hostname="localhost")
        server.stop()

    def test_options_that_do_not_fit_are_named(self):
        bad = os.path.join(self.directory, "bad.pem")
        with open(bad, "w") as file:
            file.write("no certificate\n")
        https = ["--listen", "https://127.0.0.1:0"]
        pair = ["--tls-cert-file", self.cert, "--tls-key-file", self.key]
        for options, part in (
            (https, "tls-cert-file is needed"),
            ([*https, *pair[:2]], "tls-key-file is needed"),
            (["--listen", "127.0.0.1:0", *pair], "no address of listen begins with https://"),
            ([*https, *pair[:2], "--tls-key-file", self.agent[1]], "is not the key of tls-cert-file"),
            ([*https, *pair[:2], "--tls-key-file", bad], "bad.pem: "),
            ([*https, "--tls-cert-file", bad, *pair[2:]], "bad.pem: "),
            ([*https, "--tls-cert-file", "/nowhere", *pair[2:]], "tls-cert-file /nowhere: No such file"),
            ([*https, *pair, "--tls-client-auth", "require"], "tls-client-ca-file is needed"),
            ([*https, *pair, "--tls-client-auth", "maybe"], "none, request or require"),
            ([*https, *pair, "--tls-min-version", "1.1"], "must be 1.2 or 1.3"),
            (["--listen", "https://0.0.0.0:0", *pair], "can be reached from other machines"),
        ):
            done = subprocess.run([HEARTHD, "--database-url", self.cluster.url(), *options], capture_output=True, text=True,
                                  env=server_environment(), timeout=60)
            self.assertEqual(done.returncode, 2, (options, done.stderr))
            self.assertIn(part, done.stderr + done.stdout)
            self.assertNotIn("component=store", done.stderr + done.stdout)  # which might have migrated the database

    def serial(self, server):
        context = ssl.create_default_context(cafile=self.ca.file)
        with socket.create_connection(("127.0.0.1", server.tls_port), 30) as raw:
            with context.wrap_socket(raw, server_hostname="localhost") as connection:
                return connection.getpeercert()["serialNumber"]

    def test_a_new_certificate_is_used_after_sighup_and_a_bad_one_is_not(self):
        files = [os.path.join(self.directory, "live." + end) for end in ("pem", "key")]

        def put(pair):
            for source, path in zip(pair, files):
                shutil.copy(source, path + ".new")
                os.replace(path + ".new", path)
        second = self.ca.sign("second", "/CN=localhost")
        put((self.cert, self.key))
        server = TlsServer(*files, database_url=self.cluster.url())
        self.addCleanup(server.kill)
        first = self.serial(server)
        expiry = prometheus.value(server.metrics(), "hearth_tls_certificate_expiry_timestamp_seconds")
        self.assertTrue(19 * 86400 < expiry - time.time() < 21 * 86400)

        # Under load: every request of every connection, old or new, is answered.
        stop, n_calls = threading.Event(), [0, 0]

        def call_grpc():
            channel = server.secure_channel(self.ca.file)
            while not stop.is_set():
                channel.unary_unary(HEALTH)(b"", timeout=60)
                n_calls[0] += 1
            channel.close()

        def call_https():
            while not stop.is_set():
                assert server.https("GET", "/healthz", self.ca.file)[0] == 200
                n_calls[1] += 1

        def change():
            try:
                put(second)
                server.process.send_signal(signal.SIGHUP)
                eventually(lambda: self.serial(server) != first, what="the new certificate")
                put((self.cert, self.agent[1]))
                server.process.send_signal(signal.SIGHUP)
                eventually(lambda: "certificate not loaded again" in server.log())
                for _ in range(5):
                    server.process.send_signal(signal.SIGHUP)
                    time.sleep(0.1)
                eventually(lambda: min(n_calls) > 10, what="ten calls of each")
                self.assertNotEqual(self.serial(server), first)
            finally:
                stop.set()
        in_threads([call_grpc, call_https, call_https, change])
        self.assertIn("is not the key of tls-cert-file", server.log())
        self.assertIn("expires=", server.log())
        self.assertGreaterEqual(prometheus.value(server.metrics(), "hearth_tls_reloads_total", result="failed"), 1)
        server.stop()

    def test_slow_handshakes_end_and_do_not_keep_others_out(self):
        server = self.start("--first-bytes-timeout", "1s", "--head-timeout", "2s")
        silent = [socket.create_connection(("127.0.0.1", server.tls_port), 30) for _ in range(50)]
        slow = [socket.create_connection(("127.0.0.1", server.tls_port), 30) for _ in range(50)]
        for connection in slow:
            connection.sendall(b"\x16\x03\x01\x01\x00\x01")
        started = time.monotonic()
        self.assertEqual(self.check(server), b"\x08\x01")
        self.assertLess(time.monotonic() - started, 10)
        for connection in silent + slow:
            connection.settimeout(60)
            try:
                self.assertEqual(connection.recv(1), b"")
            except ConnectionResetError:
                pass
            connection.close()
        self.assertLess(time.monotonic() - started, 30)
        eventually(lambda: server.failures("timeout") >= 90)
        # After the handshake, the limits of plain connections hold.
        context = ssl.create_default_context(cafile=self.ca.file)
        for part in (b"", b"GET /he"):
            with context.wrap_socket(socket.create_connection(("127.0.0.1", server.tls_port), 60), server_hostname="localhost") as one:
                one.sendall(part)
                one.settimeout(60)
                try:
                    self.assertEqual(one.recv(1), b"")
                except (ssl.SSLError, ConnectionResetError):
                    pass
        server.stop()

    def test_tls_connections_count_once(self):
        server = self.start("--max-connections", "20")
        context = ssl.create_default_context(cafile=self.ca.file)

        def connect():
            one = context.wrap_socket(socket.create_connection(("127.0.0.1", server.tls_port), 30), server_hostname="localhost")
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b"200 OK", one.recv(4096))
            return one
        held = [connect() for _ in range(18)]
        eventually(lambda: prometheus.value(server.metrics(), "hearth_open_connections") in (18, 19, 20))
        # At the limit a health check still gets in, by TLS, too.
        held += [connect() for _ in range(6)]
        for one in held:
            one.close()

        def is_empty():
            try:
                return prometheus.value(server.metrics(), "hearth_open_connections") <= 2
            except ConnectionResetError:  # still at the limit
                return False
        eventually(is_empty)
        server.stop()

    @unless_sanitized("a connection takes hundreds of kilobytes")
    def test_many_idle_connections_take_little_memory(self):
        server = self.start()
        context = ssl.create_default_context(cafile=self.ca.file)

        def connect(port):
            one = socket.create_connection(("127.0.0.1", port), 60)
            if port == server.tls_port:
                one = context.wrap_socket(one, server_hostname="localhost")
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b"200 OK", one.recv(4096))
            return one

        def resident():
            with open("/proc/%d/smaps_rollup" % server.process.pid) as rollup:
                return int(re.search(r"Pss_Anon:\s+(\d+) kB", rollup.read()).group(1))
        held = [connect(port) for port in (server.port, server.tls_port) for _ in range(20)]
        each = {}
        for way, port in (("plain", server.port), ("TLS", server.tls_port)):
            before = resident()
            held += [connect(port) for _ in range(200)]
            each[way] = (resident() - before) / 200
            print("note: an idle %s connection takes %.0f KiB" % (way, each[way]))
        self.assertLess(each["TLS"] - each["plain"], 64)
        for one in held:
            one.close()
        server.stop()

    def test_the_stop_lets_requests_finish(self):
        server = self.start()
        channel = server.secure_channel(self.ca.file)
        channel.unary_unary(HEALTH)(b"", timeout=60)
        stop, codes = threading.Event(), []

        def call():
            while not stop.is_set():
                try:
                    channel.unary_unary(HEALTH)(b"", timeout=60)
                    codes.append(None)
                except grpc.RpcError as error:
                    codes.append(error.code())
                    return
        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        started = time.monotonic()
        server.stop()
        took = time.monotonic() - started
        for thread in threads:
            thread.join()
        self.assertGreater(len(codes), 50)
        self.assertLessEqual(set(codes), {None, grpc.StatusCode.UNAVAILABLE})
        self.assertLess(took, 20)
        channel.close()


if __name__ == "__main__":
    unittest.main()
