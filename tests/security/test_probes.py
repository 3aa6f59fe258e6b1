"""Every RPC and route, with every kind of wrong credential: the exact refusal, and nothing of another tenant.

The targets are read from the server's own tables, so a new method is probed without a change here.
"""

import json
import unittest

import grpc

import probes
from pprof import Profile
from server import RpcError, now_ms
from test_access import JSON, AccessServer, bearer

CODES = {401: "unauthenticated", 403: "permission_denied", 429: "resource_exhausted"}
REFUSED = {"unauthenticated", "permission_denied"}
RED, BLUE = "crimson", "cerulean"  # every word of a tenant's data begins with its own


def same(value):
    return value


class Prober:
    """Calls any target with given headers; returns "let in", or the name of the refusal, and all that came back."""

    def __init__(self, server, port):
        self.server = server
        self.channel = grpc.insecure_channel("127.0.0.1:%d" % port)

    def close(self):
        self.channel.close()

    def call(self, target, headers, body=None):
        return (self.rpc if target.kind == "rpc" else self.http)(target, headers, body)

    def http(self, target, headers, body):
        data = None if target.kind == "GET" else (body or b"")
        status, found, answer = self.server.http(target.kind, target.path, data, headers)
        return CODES.get(status, "let in") if status in (401, 403) else "let in", repr(found).encode() + answer

    def rpc(self, target, headers, body):
        metadata = [(name.lower(), value) for name, value in headers.items()]
        collects = "HEARTH_METHOD_COLLECT" in target.flags or "HEARTH_METHOD_CHAT" in target.flags
        streams = bool({"HEARTH_METHOD_STREAM", "HEARTH_METHOD_CHAT"} & target.flags)
        kind = ("stream_" if collects else "unary_") + ("stream" if streams else "unary")
        method = getattr(self.channel, kind)(target.path, request_serializer=same, response_deserializer=same)
        message = iter([body or b""]) if collects else (body or b"")
        try:
            answer = method(message, metadata=metadata, timeout=20)
            if streams:
                first = next(iter(answer), b"")
                answer.cancel()
                answer = first
            return "let in", answer
        except grpc.RpcError as error:
            name = error.code().name.lower()
            said = (error.details() or "").encode() + repr(error.trailing_metadata()).encode()
            return (name if name in REFUSED else "let in"), said


class Probes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hearth = AccessServer("--otlp-traces", "--max-wrong-credentials", "100000")
        cls.hearth.root = cls.hearth.token(("*", "admin"), name="probes")["token"]
        cls.prober = Prober(cls.hearth.server, cls.hearth.server.port)
        cls.targets = probes.targets()

    @classmethod
    def tearDownClass(cls):
        cls.prober.close()
        cls.hearth.stop()

    def expect(self, headers, expected, targets=None):
        """expected(target): the refusal, or "let in"."""
        wrong = []
        for target in targets or self.targets:
            found, _ = self.prober.call(target, headers)
            if found != expected(target):
                wrong.append("%s %s: %s instead of %s" % (target.kind, target.path, found, expected(target)))
        self.assertEqual(wrong, [])

    def test_every_row_of_the_tables_is_probed(self):
        self.assertEqual(len(self.targets), probes.lines())
        self.assertGreater(len(self.targets), 150)

    def test_without_a_credential_only_public_targets_answer(self):
        expected = lambda t: "let in" if t.right == "PUBLIC" else "unauthenticated"
        self.expect({}, expected)
        self.expect({"X-Scope-OrgID": RED}, expected)

    def test_forged_headers_are_no_credential(self):
        expected = lambda t: "let in" if t.right == "PUBLIC" else "unauthenticated"
        for headers in (
            {"X-Forwarded-User": "root", "X-Forwarded-Groups": "admin", "X-Forwarded-For": "127.0.0.1"},
            {"Authorization": "Basic cm9vdDpyb290", "X-Scope-OrgID": "*"},
            {"Authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.", "X-Scope-OrgID": RED},
            {"authentication": "root"},
            {"DD-API-KEY": "0" * 32},
        ):
            self.expect(headers, expected)

    def test_a_forged_session_is_refused(self):
        cookie = {"Cookie": "hearth_session=" + "0" * 64, "Origin": "http://" + self.hearth.address}
        refused = {"rpc": "permission_denied"}  # gRPC has no origin
        self.expect(cookie, lambda t: "let in" if t.right == "PUBLIC" else refused.get(t.kind, "unauthenticated"))

    def test_unknown_and_expired_tokens_are_refused(self):
        deleted = self.hearth.token((RED, "admin"))
        self.hearth.must("DeleteToken", {"id": deleted["id"]})
        expired = self.hearth.token((RED, "admin"), expiresMs=str(now_ms() + 300))
        while self.prober.call(self.targets[0], bearer(expired["token"]))[0] == "let in":
            pass
        other = expired["token"][:-1] + ("x" if expired["token"][-1] != "x" else "y")
        expected = lambda t: "let in" if t.right == "PUBLIC" else "unauthenticated"
        for token in (deleted["token"], expired["token"], other):
            self.expect({**bearer(token), "X-Scope-OrgID": RED}, expected)

    def test_each_role_may_call_its_methods_and_no_others(self):
        for role in probes.ROLES:
            for tenant, everywhere in ((RED, False), ("*", True)):
                token = self.hearth.token((tenant, role))["token"]
                self.expect(
                    {**bearer(token), "X-Scope-OrgID": RED},
                    lambda t: "let in" if probes.may(t, [role], everywhere) else "permission_denied",
                )

    def test_all_roles_in_another_tenant_open_nothing_here(self):
        token = self.hearth.token(*((BLUE, role) for role in probes.ROLES))["token"]

        def expected(t):
            open_to_all = t.right == "PUBLIC" or t.right == "ANY" and probes.scope(t) != "tenant"
            is_let_in = probes.scope(t) == "some" or open_to_all and t.path not in probes.OWN
            return "let in" if is_let_in else "permission_denied"

        self.expect({**bearer(token), "X-Scope-OrgID": RED}, expected)
        self.expect({**bearer(token), "X-Scope-OrgID": "*"}, expected)

    def test_a_narrowed_grant_does_not_cover_the_whole_server(self):
        token = self.hearth.token(("*", "admin", '{team="x"}'))["token"]
        server_wide = [t for t in self.targets if probes.scope(t) == "server" and t.right not in ("PUBLIC", "ANY")]
        self.assertGreater(len(server_wide), 5)
        self.expect(bearer(token), lambda t: "permission_denied", server_wide)


def profile(word, value):
    p = Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000)
    p.add([word + "main", word + "work"], [value], {word + "samplelabel": word + "samplevalue"})
    return p.encode()


class Ids(unittest.TestCase):
    """Ids of the other tenant in every field of every request: nothing of it comes back, nothing of it changes."""

    @classmethod
    def setUpClass(cls):
        cls.hearth = AccessServer("--otlp-traces")
        cls.prober = Prober(cls.hearth.server, cls.hearth.server.port)
        cls.tokens = {word: cls.hearth.token((word, "admin"))["token"] for word in (RED, BLUE)}
        for word in (RED, BLUE):
            labels = {"__name__": "process_cpu", "service_name": word + "service", word + "label": word + "value"}
            cls.hearth.server.push(profile(word, 7), labels, metadata=[("authorization", "Bearer " + cls.tokens[word])])
        cls.ids = cls.make_objects(BLUE)
        cls.make_objects(RED)

    @classmethod
    def tearDownClass(cls):
        cls.prober.close()
        cls.hearth.stop()

    @classmethod
    def ask(cls, word, method, message):
        status, _, answer = cls.hearth.post("/" + method, message, bearer(cls.tokens[word]))
        if status != 200:
            raise AssertionError("%s: %d %s" % (method, status, answer))
        return answer

    @classmethod
    def make_objects(cls, word):
        """One object of each kind; returns fields of requests that name them."""
        now = now_ms()
        listed = cls.ask(word, "hearth.v1.ProfileService/ListProfiles", {"filter": {"start": str(now - 600_000), "end": str(now + 60_000)}})
        rule = {"metricName": "profiles_recorded_" + word, "matchers": ['{__profile_type__="process_cpu:cpu:nanoseconds:cpu:nanoseconds"}']}
        cls.ask(word, "settings.v1.RecordingRulesService/UpsertRecordingRule", rule)
        rules = cls.ask(word, "settings.v1.RecordingRulesService/ListRecordingRules", {})
        cls.ask(word, "settings.v1.SettingsService/Set", {"setting": {"name": word + "setting", "value": word + "value"}})
        adhoc = cls.ask(word, "adhocprofiles.v1.AdHocProfileService/Upload", {"name": word + "file", "profile": cls.text(word)})
        upload = cls.ask(word, "hearth.v1.UploadService/CreateUpload", {"labels": [{"name": "service_name", "value": word + "s"}], "sizeBytes": "5"})
        token = cls.hearth.token((word, "viewer"), name=word + "token")
        return {
            "profileId": listed["profiles"][0]["id"], "ruleId": rules["rules"][0]["id"], "adhocId": adhoc["id"],
            "uploadId": upload["uploadId"], "tokenId": token["id"],
        }

    @staticmethod
    def text(word):
        import base64

        return base64.b64encode(profile(word, 1)).decode()

    def requests(self):
        """Messages with the other tenant's ids and words in all fields that requests have."""
        now, ids = now_ms(), self.ids
        common = {
            "start": str(now - 600_000), "end": str(now + 60_000), "fromMs": str(now - 600_000), "toMs": str(now + 60_000),
            "profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "profileType": "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "labelSelector": '{service_name="%sservice"}' % BLUE, "selector": "{}", "matchers": ["{}"],
            "service": BLUE + "service", "serviceName": BLUE + "service", "tenant": BLUE, "subject": "token:" + ids["tokenId"],
        }
        for id in ids.values():
            yield {**common, "filter": common, "id": id, "name": BLUE + "setting", "taskId": id, "uploadId": id, "profileId": id, "ids": [id]}
        yield {**common, "labelSelector": "{}", "name": "service_name"}

    def state(self):
        """What the other tenant has."""
        now = now_ms()
        ranged = {"start": str(now - 600_000), "end": str(now + 60_000)}
        out = [
            self.ask(BLUE, method, message)
            for method, message in (
                ("hearth.v1.ProfileService/ListProfiles", {"filter": ranged}),
                ("settings.v1.RecordingRulesService/ListRecordingRules", {}),
                ("settings.v1.SettingsService/Get", {}),
                ("adhocprofiles.v1.AdHocProfileService/List", {}),
                ("hearth.v1.UploadService/ListUploads", {}),
                ("hearth.v1.AdminService/GetRetention", {}),
                ("hearth.v1.AccessService/ListTokens", {}),
            )
        ]
        return json.dumps(out).replace("lastUsed", "")

    def test_no_request_of_another_tenant_reads_or_changes_this_one(self):
        before = self.state()
        self.assertIn(BLUE, before)
        seen_own = b""
        for target in probes.targets():
            if target.kind != "rpc" or probes.scope(target) == "server" or {"HEARTH_METHOD_COLLECT", "HEARTH_METHOD_CHAT", "HEARTH_METHOD_STREAM"} & target.flags:
                continue
            for message in self.requests():
                status, head, body = self.hearth.server.http(
                    "POST", target.path, json.dumps(message).encode(), {**JSON, **bearer(self.tokens[RED])}
                )
                answer = repr(head).encode() + body
                seen_own += answer
                for word in ("main", "work", "samplevalue", "value", "file", "token"):
                    asked = BLUE + word in json.dumps(message)  # errors repeat what was asked
                    self.assertFalse(not asked and (BLUE + word).encode() in answer, (target.path, message, answer[:400]))
        self.assertIn((RED + "main").encode(), seen_own)
        self.assertEqual(len(self.state()), len(before))
        self.assertEqual(
            [w for w in (self.ids["profileId"], self.ids["ruleId"], self.ids["tokenId"]) if w not in self.state()], []
        )


if __name__ == "__main__":
    unittest.main()
