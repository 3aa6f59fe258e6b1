"""Ways to ask besides gRPC and Connect: gRPC-Web, reflection, gzip of answers; what clients ask about the server first."""

import base64
import gzip
import http.client
import json
import struct
import threading
import time
import unittest

import grpc

import pprof
import raw_h2
import server
import wire

NAMES = "/" + server.QUERIER + "LabelNames"
NOW = int(time.time() * 1000)
RANGE_JSON = json.dumps({"start": NOW - 3600_000, "end": NOW}).encode()
RANGE = wire.encode([(2, NOW - 3600_000), (3, NOW)])
JSON = {"Content-Type": "application/json"}


def frame(message, flags=0):
    return struct.pack(">BI", flags, len(message)) + message


def frames(body):
    """[(flags, bytes)] of a whole body."""
    out, at = [], 0
    while at < len(body):
        flags, size = struct.unpack_from(">BI", body, at)
        at += 5
        out.append((flags, body[at : at + size]))
        assert len(out[-1][1]) == size, "cut frame"
        at += size
    return out


def trailers(text):
    lines = text.decode("ascii").split("\r\n")
    assert lines.pop() == "", "trailers end with a line end"
    return [tuple(line.split(": ", 1)) for line in lines]


class GrpcWeb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.terminate() == 0

    def ask(self, path, body, kind="application/grpc-web+proto", **headers):
        headers = {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        status, found, answer = self.server.http("POST", path, body, headers)
        self.assertEqual((status, found["content-type"]), (200, kind))
        if "text" in kind:
            answer = base64.b64decode(answer, validate=True)
        parts = frames(answer)
        self.assertEqual(parts[-1][0], 0x80)
        return [p for p in parts[:-1]], dict(trailers(parts[-1][1])), found

    def assert_fails(self, status, part, path, body, **headers):
        messages, end, _ = self.ask(path, body, **headers)
        self.assertEqual((messages, end["grpc-status"]), ([], str(status)), end)
        self.assertIn(part, end["grpc-message"])

    def test_an_answer_is_a_frame_followed_by_trailers(self):
        expected, _ = self.server.connect_proto(NAMES[1:], RANGE)
        for kind in ("application/grpc-web", "application/grpc-web+proto"):
            messages, end, _ = self.ask(NAMES, frame(RANGE), kind)
            self.assertEqual((messages, end), ([(0, expected)], {"grpc-status": "0"}))
        messages, end, _ = self.ask(NAMES, frame(RANGE_JSON), "application/grpc-web+json")
        self.assertEqual(json.loads(messages[0][1]).get("names", []), wire.texts(wire.decode(expected).get(1, [])))
        messages, end, _ = self.ask(NAMES, base64.b64encode(frame(RANGE)), "application/grpc-web-text")
        self.assertEqual((messages, end["grpc-status"]), ([(0, expected)], "0"))

    def test_errors_are_trailers(self):
        self.assert_fails(3, "protobuf", NAMES, frame(b"\xff"))
        self.assert_fails(3, "missing time range", NAMES, frame(b""))
        self.assert_fails(3, "no whole message", NAMES, b"")
        self.assert_fails(3, "no whole message", NAMES, frame(RANGE)[:-1])
        self.assert_fails(12, "second message", NAMES, frame(RANGE) * 2)
        self.assert_fails(3, "grpc-encoding", NAMES, frame(gzip.compress(RANGE), 1))
        self.assert_fails(3, "base64", NAMES, b"!!!!", kind="application/grpc-web-text")
        self.assert_fails(12, "gzip, deflate, identity", NAMES, frame(RANGE), grpc_encoding="br")
        self.assert_fails(12, "grpc-encoding", NAMES, frame(RANGE), Content_Encoding="gzip")
        self.assert_fails(4, "timed out", NAMES, frame(RANGE), grpc_timeout="0m")
        self.assert_fails(3, "grpc-timeout", NAMES, frame(RANGE), grpc_timeout="soon")
        self.assert_fails(12, "gRPC only", "/grpc.health.v1.Health/Watch", frame(b""))
        status, headers, _ = self.server.http("POST", "/x.Y/Z", frame(b""), {"Content-Type": "application/grpc-web"})
        self.assertEqual(status, 404)
        status, headers, _ = self.server.http("POST", NAMES, frame(b""), {"Content-Type": "application/grpc-web-thrift"})
        self.assertEqual(status, 415)
        self.assertIn("application/grpc-web-text", headers["accept-post"])

    def test_messages_may_be_compressed_both_ways(self):
        messages, end, _ = self.ask(NAMES, frame(gzip.compress(RANGE), 1), grpc_encoding="gzip", grpc_timeout="10S")
        self.assertEqual(end["grpc-status"], "0")
        self.server.push(server_profile(), {"__name__": "process_cpu", **{"a_rather_long_label_%03d" % i: "x" for i in range(50)}})
        plain, _, found = self.ask(NAMES, frame(RANGE_NOW()))
        self.assertEqual(plain[0][0], 0)
        self.assertNotIn("grpc-encoding", found)
        packed, end, found = self.ask(NAMES, frame(RANGE_NOW()), grpc_accept_encoding="identity,gzip")
        self.assertEqual((packed[0][0], found["grpc-encoding"], end["grpc-status"]), (1, "gzip", "0"))
        self.assertEqual(gzip.decompress(packed[0][1]), plain[0][1])
        self.assertLess(len(packed[0][1]), len(plain[0][1]))
        self.assertGreater(len(plain[0][1]), 1024)

    def test_a_bomb_in_a_message_is_refused(self):
        one = server.Server("--max-request-bytes", "64k", wait=False)
        try:
            self.server, whole = one, self.server
            bomb = gzip.compress(b"\x0a\x7e" + b"x" * 10_000_000)
            self.assert_fails(8, "max-request-bytes", NAMES, frame(bomb, 1), grpc_encoding="gzip")
        finally:
            self.server = whole
            one.stop()


def RANGE_NOW():
    now = int(time.time() * 1000)
    return wire.encode([(2, now - 3600_000), (3, now)])


def server_profile():
    profile = pprof.Profile([("cpu", "nanoseconds")], time_ns=time.time_ns())
    profile.add(["work", "main"], [10])
    return profile.encode()


class GrpcCompression(unittest.TestCase):
    def test_an_answer_is_compressed_when_the_request_was(self):
        running = server.Server()
        asked = (("gzip", raw_h2.message(gzip.compress(b""), compressed=True)), ("identity", raw_h2.message(b"")))
        for encoding, body in asked:
            head = raw_h2.call_headers(
                "/hearth.v1.AdminService/Doctor", ("grpc-encoding", encoding), ("grpc-accept-encoding", "identity,deflate,gzip")
            )
            with raw_h2.Connection(running.port) as connection:
                connection.greet()
                connection.send(raw_h2.frame(raw_h2.HEADERS, raw_h2.END_HEADERS, 1, head) + raw_h2.data_frames(1, body)[0])
                data = b"".join(f[3] for f in connection.read_until_end(1) if f[0] == raw_h2.DATA)
            ((is_compressed, answer),) = frames(data)
            self.assertEqual(is_compressed, encoding == "gzip")
            plain = gzip.decompress(answer) if is_compressed else answer
            self.assertGreater(len(plain), 1024)
            self.assertIn(b"jit", plain)
        self.assertEqual(running.terminate(), 0)


class Reflection(unittest.TestCase):
    """As a client of reflection does it: one stream, lists first, then files by symbol and by name."""

    LIST, FILE, SYMBOL, EXTENSION, EXTENSIONS = 7, 3, 4, 5, 6

    @classmethod
    def setUpClass(cls):
        cls.server = server.Server("--multitenancy", wait=False)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def ask(self, *questions, version="v1", metadata=None, compression=None):
        """[(which, value)] in one stream -> [decoded answer]."""
        call = self.server.channel.stream_stream(
            "/grpc.reflection.%s.ServerReflection/ServerReflectionInfo" % version
        )
        sent = [wire.encode([(1, "host"), (which, value)]) for which, value in questions]
        answers = [wire.decode(a) for a in call(iter(sent), timeout=100, compression=compression)]
        self.assertEqual(len(answers), len(sent))
        for question, answer in zip(sent, answers):
            self.assertEqual((answer[1], answer[2]), ([b"host"], [question]))
        return answers

    def names_in(self, answer):
        files = wire.decode(answer[4][0])[1]
        return [wire.decode(f)[1][0].decode() for f in files]

    def services(self):
        (answer,) = self.ask((self.LIST, ""))
        return [wire.decode(s)[1][0].decode() for s in wire.decode(answer[6][0])[1]]

    def test_every_service_is_listed_once_and_found(self):
        services = self.services()
        self.assertEqual(len(services), len(set(services)))
        for service in ("push.v1.PusherService", "querier.v1.QuerierService", "grpc.health.v1.Health",
                        "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"):
            self.assertIn(service, services)
        for version in ("v1", "v1alpha"):
            for answer in self.ask(*((self.SYMBOL, s) for s in services), version=version):
                self.assertIn(4, answer)

    def test_the_paths_of_the_server_are_those_of_the_descriptors(self):
        offered = {
            line.strip().lstrip("/") for line in self.server.http("GET", "/")[2].decode().splitlines()
            if line.startswith("     /") and ".v1" in line
        }
        described = set()
        for answer in self.ask(*((self.SYMBOL, s) for s in self.services())):
            file = wire.decode(wire.decode(answer[4][0])[1][0])
            for service in map(wire.decode, file.get(6, [])):
                for method in map(wire.decode, service.get(2, [])):
                    described.add("%s.%s/%s" % (file[2][0].decode(), service[1][0].decode(), method[1][0].decode()))
        self.assertGreater(len(offered), 20)
        self.assertLessEqual(offered, described)

    def test_a_file_is_read_with_its_imports(self):
        by_name, by_symbol, leaf = self.ask(
            (self.FILE, "querier/v1/querier.proto"), (self.SYMBOL, "querier.v1.QuerierService.Series"),
            (self.FILE, "types/v1/types.proto"),
        )
        self.assertEqual(self.names_in(by_name)[0], "querier/v1/querier.proto")
        self.assertEqual(self.names_in(by_name), self.names_in(by_symbol))
        self.assertIn("types/v1/types.proto", self.names_in(by_name))
        self.assertEqual(self.names_in(leaf), ["types/v1/types.proto"])

    def test_symbols_of_every_kind_are_found(self):
        kinds = {
            "push.v1.PushRequest": "push/v1/push.proto",
            "push.v1.PushRequest.series": "push/v1/push.proto",
            "querier.v1.ProfileFormat": "querier/v1/querier.proto",
            "querier.v1.PROFILE_FORMAT_DOT": "querier/v1/querier.proto",
            "grpc.health.v1.HealthCheckResponse.ServingStatus": "grpc/health/v1/health.proto",
            "grpc.health.v1.HealthCheckResponse.SERVING": "grpc/health/v1/health.proto",
            "grpc.reflection.v1.ServerReflectionRequest.message_request": "grpc/reflection/v1/reflection.proto",
            "google.v1.Profile": "google/v1/profile.proto",
        }
        for answer, file in zip(self.ask(*((self.SYMBOL, s) for s in kinds)), kinds.values()):
            self.assertEqual(self.names_in(answer)[0], file)

    def test_unknown_names_are_answered_without_ending_the_stream(self):
        answers = self.ask(
            (self.SYMBOL, "querier.v1.Nope"), (self.SYMBOL, "querier.v1"), (self.SYMBOL, ""), (self.SYMBOL, "Series"),
            (self.SYMBOL, "push.v1.PushRequest.series.x"), (self.FILE, "nope.proto"), (self.FILE, ""),
            (self.EXTENSION, [(1, "push.v1.PushRequest"), (2, 5)]), (self.EXTENSIONS, "push.v1.Nope"),
            (self.EXTENSIONS, "push.v1.PushRequest"), (9, "future"), (self.LIST, "*"),
        )
        codes = [wire.decode(a[7][0])[1] if 7 in a else None for a in answers]
        self.assertEqual(codes, [[5]] * 9 + [None, [3], None])
        self.assertEqual(wire.decode(answers[9][5][0]), {1: [b"push.v1.PushRequest"]})

    def test_the_descriptors_make_working_messages(self):
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        except ImportError:
            self.skipTest("no python3-protobuf")
        pool = descriptor_pool.DescriptorPool()
        seen = set()

        def add(answer):
            files = [descriptor_pb2.FileDescriptorProto.FromString(f) for f in wire.decode(answer[4][0])[1]]
            for file in reversed(files):
                if file.name not in seen:
                    seen.add(file.name)
                    pool.Add(file)

        add(self.ask((self.SYMBOL, "version.v1.Version"))[0])
        add(self.ask((self.SYMBOL, "querier.v1.QuerierService"))[0])
        service = pool.FindServiceByName("querier.v1.QuerierService")
        method = service.FindMethodByName("LabelNames")
        self.assertEqual(method.input_type.full_name, "types.v1.LabelNamesRequest")
        version = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("version.v1.VersionResponse"))
        answer = version.FromString(self.server.grpc_bytes("version.v1.Version/Version", b"")[0])
        self.assertEqual(answer.QuerierAPI, 1)

    def test_compressed_messages_are_read_and_bad_or_large_ones_refused(self):
        (answer,) = self.ask((self.SYMBOL, "push.v1.PushRequest"), compression=grpc.Compression.Gzip)
        self.assertIn(4, answer)
        call = self.server.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        for message, code in (
            (b"\xff", grpc.StatusCode.INVALID_ARGUMENT),
            (wire.encode([(1, "x" * 5000)]), grpc.StatusCode.RESOURCE_EXHAUSTED),
        ):
            with self.assertRaises(grpc.RpcError) as raised:
                list(call(iter([message]), timeout=100))
            self.assertEqual(raised.exception.code(), code)
        with self.assertRaises(grpc.RpcError) as raised:
            bomb = wire.encode([(1, "x" * 1_000_000)])
            list(call(iter([bomb]), timeout=100, compression=grpc.Compression.Gzip))
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(list(call(iter([]), timeout=100)), [])
        status, _, body = self.server.http("POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", b"{}", JSON)
        self.assertEqual((status, json.loads(body)["code"]), (501, "unimplemented"))

    def test_many_short_streams_end_and_an_open_one_does_not_delay_a_stop(self):
        one = server.Server(wait=False, database_url="postgresql://nobody@127.0.0.1:1/nothing")
        call = one.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        question = wire.encode([(self.LIST, "")])
        go_on = threading.Event()

        def asking():
            yield question
            go_on.wait(120)

        calls = [call(asking()) for _ in range(50)]
        for open_call in calls:
            self.assertTrue(next(open_call))
        for open_call in calls[:49]:
            open_call.cancel()
        started = time.monotonic()
        one.terminate()
        self.assertLess(time.monotonic() - started, 40)
        with self.assertRaises(grpc.RpcError) as raised:
            next(calls[49])
        self.assertIn(raised.exception.code(), (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED))
        go_on.set()


class AboutTheServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server("--multitenancy")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.terminate() == 0

    def ask(self, method, tenant="a"):
        headers = {**JSON, **({"X-Scope-OrgID": tenant} if tenant else {})}
        status, _, body = self.server.http("POST", "/" + method, b"{}", headers)
        return status, json.loads(body)

    def test_the_version_needs_no_tenant(self):
        self.assertEqual(self.ask("version.v1.Version/Version", None), (200, {"QuerierAPI": "1"}))
        self.assertEqual(self.server.grpc_bytes("version.v1.Version/Version", b"")[0], b"\x08\x01")

    def test_feature_flags_are_sorted_and_true(self):
        status, answer = self.ask("capabilities.v1.FeatureFlagsService/GetFeatureFlags")
        self.assertEqual(status, 200)
        names = [flag["name"] for flag in answer["featureFlags"]]
        self.assertEqual(names, sorted(names))
        enabled = {flag["name"] for flag in answer["featureFlags"] if flag.get("enabled")}
        self.assertLessEqual({"utf8LabelNames", "v2StorageLayer"}, enabled)
        rules = self.ask("settings.v1.RecordingRulesService/ListRecordingRules")[0] if self.offers("settings.v1.RecordingRulesService") else 404
        self.assertEqual("pyroscopeRuler" in enabled, rules == 200)
        self.assertEqual(self.ask("capabilities.v1.FeatureFlagsService/GetFeatureFlags", None)[0], 401)

    def offers(self, service):
        return service in self.server.http("GET", "/")[2].decode()

    def test_source_code_is_not_configured(self):
        for method in ("GithubApp", "GithubLogin", "GithubRefresh", "GetFile", "GetCommit", "GetCommits"):
            status, answer = self.ask("vcs.v1.VCSService/" + method)
            self.assertEqual((status, answer["code"]), (501, "unimplemented"))
            self.assertIn("not configured", answer["message"])
            self.assertEqual(self.ask("vcs.v1.VCSService/" + method, None)[0], 401)


if __name__ == "__main__":
    unittest.main()
