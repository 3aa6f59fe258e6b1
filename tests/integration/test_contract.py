"""Every method and route of the port against contract.py: by HTTP as JSON and as protobuf, and by gRPC."""

import base64
import gzip
import json
import re
import unittest

import contract
import schema
from contract import HTTP_STATUS, METHODS
from server import ROOT, RpcError, Server, now_ms

JSON, PROTO = {"Content-Type": "application/json"}, {"Content-Type": "application/proto"}
PAGE = ROOT / "docs/reference/pyroscope-compatibility.md"


def methods_of_the_server():
    """{full name: flags} out of methods.def."""
    text = (ROOT / "server/front/methods.def").read_text()
    rows = re.findall(r'^(?:X|UNARY)\([A-Z0-9_]+, "([^"]+)", "([^"]+)", .*?, ([A-Z_| ]+)\)$', text, re.M)
    return {"%s/%s" % (service, method): flags for service, method, flags in rows}


OFFERED = methods_of_the_server()


def at(value, t):
    """The value with "T+5" and "(T+5)*6" in it as numbers."""
    if isinstance(value, str):
        m = re.fullmatch(r"\(?T([+-]\d+)?\)?(?:\*(\d+))?", value)
        return (t + int(m.group(1) or 0)) * int(m.group(2) or 1) if m else value
    if isinstance(value, dict):
        return {k: at(v, t) for k, v in value.items()}
    return type(value)(at(v, t) for v in value) if isinstance(value, (list, tuple)) else value


class Contract(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--otlp-traces")
        cls.t = now_ms() // 1000 * 1000 - 120_000
        for labels, after_ms, profile in contract.PUSHED:
            data = profile((cls.t + after_ms) * 1_000_000).encode()
            cls.server.push(data, {"__name__": "process_cpu", **labels})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    # ---- three ways to ask ----

    def by_json(self, name, method, request, headers):
        body = json.dumps(schema.to_json(method.request, request))
        status, found, answer = self.server.http("POST", "/" + name, body, {**JSON, **headers})
        if status != 200:
            return self.error(status, found, answer)
        self.assertEqual(found["content-type"], "application/json")
        return None, schema.from_json(method.response, json.loads(answer))

    def by_proto(self, name, method, request, headers):
        body = schema.encode(method.request, request)
        status, found, answer = self.server.http("POST", "/" + name, body, {**PROTO, **headers})
        if status != 200:
            return self.error(status, found, answer)
        self.assertEqual(found["content-type"], "application/proto")
        return None, schema.decode(method.response, answer)

    def by_grpc(self, name, method, request, headers):
        try:
            metadata = [(k.lower(), v) for k, v in headers.items()]
            answer, _ = self.server.grpc_bytes(name, schema.encode(method.request, request), metadata)
        except RpcError as error:
            return error.code, error.message
        return None, schema.decode(method.response, answer)

    def error(self, status, headers, body):
        self.assertTrue(headers["content-type"].startswith("application/json"), headers)
        error = json.loads(body)
        self.assertLessEqual(set(error), {"code", "message", "details"})
        self.assertEqual(status, HTTP_STATUS[error["code"]])
        return error["code"], error["message"]

    # ---- the rows ----

    def test_every_row_of_the_table_is_answered_over_every_transport(self):
        for name, method in METHODS.items():
            if name not in OFFERED:
                continue
            for case in method.cases:
                request = at(case.request, self.t)
                for ask in (self.by_json, self.by_proto, self.by_grpc):
                    with self.subTest(method=name, case=case.name, by=ask.__name__):
                        code, answer = ask(name, method, request, case.headers)
                        self.assertEqual(code, case.code, answer)
                        if code is not None:
                            self.assertIn(case.part, answer)
                        elif case.expect is not None:
                            found = case.view(answer) if case.view else answer
                            self.assertEqual(found, at(case.expect, self.t))

    def test_the_rules_of_http_hold_for_every_method(self):
        for name, flags in OFFERED.items():
            path = "/" + name
            with self.subTest(method=name):
                for verb in ("GET", "PUT", "DELETE", "PATCH"):
                    status, headers, _ = self.server.http(verb, path)
                    self.assertEqual((status, headers.get("allow")), (405, "POST"))
                for content_type in ("text/plain", "application/xml", "application/json; charset=latin1"):
                    status, headers, _ = self.server.http("POST", path, b"{}", {"Content-Type": content_type})
                    self.assertEqual(status, 415)
                    for accepted in ("application/json", "application/proto"):
                        self.assertIn(accepted, headers["accept-post"])
                if "STREAM" in flags or "COLLECT" in flags:
                    self.assertEqual(self.server.http("POST", path, b"{}", JSON)[0], 501)
                    continue
                for body, headers, code in (
                    (b"", JSON, "invalid_argument"), (b"{", JSON, "invalid_argument"), (b"[]", JSON, "invalid_argument"),
                    (b'{"a":', JSON, "invalid_argument"), (b"\xff", PROTO, "invalid_argument"),
                    (b"{}", {**JSON, "Content-Encoding": "br"}, "unimplemented"),
                    (b"{}", {**JSON, "Content-Encoding": "gzip"}, "invalid_argument"),
                    (b"{}", {**JSON, "Connect-Timeout-Ms": "soon"}, "invalid_argument"),
                    (b"{}", {**JSON, "Connect-Protocol-Version": "2"}, "invalid_argument"),
                ):
                    self.assertEqual(self.error(*self.server.http("POST", path, body, headers))[0], code, (body, headers))
                empty = self.server.http("POST", path, b"{}", JSON)
                self.assertEqual(self.server.http("POST", path, b"", PROTO)[0], empty[0], "no bytes are an empty message")
                packed = self.server.http("POST", path, gzip.compress(b"{}"), {**JSON, "Content-Encoding": "gzip"})
                self.assertEqual(packed[0], empty[0])
                charset = {"Content-Type": "application/json; charset=utf-8"}
                self.assertEqual(self.server.http("POST", path, b"{}", charset)[0], empty[0])
                with self.assertRaises(RpcError) as caught:
                    self.server.grpc_bytes(name, b"\xff")
                self.assertEqual(caught.exception.code, "invalid_argument")

    def test_answers_are_gzipped_for_clients_that_accept_it(self):
        name = "querier.v1.QuerierService/SelectMergeStacktraces"
        request = schema.to_json(METHODS[name].request, at(contract.of("shop"), self.t))
        plain = self.server.http("POST", "/" + name, json.dumps(request), JSON)
        packed = self.server.http("POST", "/" + name, json.dumps(request), {**JSON, "Accept-Encoding": "gzip"})
        if packed[1].get("content-encoding") == "gzip":
            self.assertEqual(gzip.decompress(packed[2]), plain[2])
        else:
            self.assertLess(len(plain[2]), 1024, "only small answers may stay as they are")

    def test_requests_take_either_spelling_numbers_as_texts_and_enums_as_numbers(self):
        name = "querier.v1.QuerierService/SelectMergeStacktraces"
        base = at(contract.of("shop"), self.t)
        expected = self.by_json(name, METHODS[name], {**base, "format": "PROFILE_FORMAT_TREE"}, {})
        other = {
            "profile_typeID": base["profileTypeID"], "label_selector": base["labelSelector"], "start": base["start"],
            "end": float(base["end"]), "format": 2, "max_nodes": None, "fromTheFuture": [{"a": 1}],
        }
        status, _, body = self.server.http("POST", "/" + name, json.dumps(other), JSON)
        self.assertEqual((None, schema.from_json(METHODS[name].response, json.loads(body))), expected)
        self.assertEqual(base64.b64decode(json.loads(body)["tree"]), contract.SHOP_TREE)
        flame = json.loads(self.server.http("POST", "/" + name, json.dumps({**other, "format": "PROFILE_FORMAT_FUNCTIONS"}), JSON)[2])
        self.assertEqual(flame["flamegraph"]["total"], "110")

    def test_every_row_of_the_plain_routes_is_answered(self):
        for path, (allowed, rows) in contract.ROUTES.items():
            for query, body, expected, part in rows:
                with self.subTest(path=path, query=query):
                    verb = "POST" if allowed == "POST" else "GET"
                    status, headers, answer = self.server.http(verb, path + ("?" + query if query else ""), body)
                    self.assertEqual(status, expected, answer[:300])
                    self.assertIn(part, answer.decode())
                    if status >= 400 and status != 404:
                        self.assertEqual(set(json.loads(answer)) - {"details"}, {"code", "message"})
            for verb in ("GET", "POST", "PUT", "DELETE", "PATCH"):
                if allowed is not None and verb not in allowed:
                    with self.subTest(path=path, verb=verb):
                        status, headers, _ = self.server.http(verb, path)
                        self.assertEqual((status, headers.get("allow")), (405, allowed))

    def test_every_plain_route_is_in_the_table(self):
        text = (ROOT / "server/front/http_routes.def").read_text() + (ROOT / "server/front/http/instant_routes.def").read_text()
        routes = set(re.findall(r'X\(\w+, "(/[^"]+)"|ROUTE\("(/[^"]*)"', text))
        self.assertEqual({a or b for a, b in routes} - set(contract.ROUTES), set())

    # ---- the table, the page and the .proto files say the same ----

    def test_every_method_of_the_server_is_in_the_table(self):
        missing = [m for m in OFFERED if m not in METHODS and not m.startswith(contract.OWN + contract.BARE)]
        self.assertEqual(missing, [])

    def proto_messages(self):
        """{full name: {(number, JSON name)}} of our .proto files of the public API."""
        out = {}
        for path in sorted((ROOT / "proto").rglob("*.proto")):
            text = re.sub(r"//[^\n]*", "", path.read_text())
            package = re.search(r"^package ([\w.]+);", text, re.M).group(1)
            if package.startswith(("hearth.", "google.rpc", "grpc.reflection.", "opentelemetry.", "skywalking.", "vcs.")):
                continue
            for name, body in re.findall(r"^message (\w+) \{(?:\}|(.*?)^\})", text, re.M | re.S):
                fields = re.findall(r"([\w.]+) (\w+) = (\d+)(?: \[[^\]]*\])?;", body)
                out["%s.%s" % (package, name)] = {(int(number), field) for kind, field, number in fields}
        return out

    def test_our_proto_files_have_the_numbers_of_the_public_description(self):
        ours = self.proto_messages()
        self.assertGreater(len(ours), 40)
        for name, fields in ours.items():
            with self.subTest(name):
                self.assertIn(name, schema.MESSAGES)
                self.assertEqual(fields, {(f.number, f.proto_name) for f in schema.MESSAGES[name]})

    def test_the_compatibility_page_names_every_method_and_field(self):
        page = PAGE.read_text()
        for name in OFFERED:
            if not name.startswith(contract.OWN):
                self.assertIn("`%s`" % name.rsplit("/", 1)[1], page, name)
        skipped = ("google.v1.", "grpc.")
        for name, fields in self.proto_messages().items():
            if name.startswith(skipped):
                continue
            for _, field in fields:
                with self.subTest(message=name, field=field):
                    self.assertIn("`%s`" % field, page)


if __name__ == "__main__":
    unittest.main()
