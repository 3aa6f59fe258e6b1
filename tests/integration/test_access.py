"""Who may do what: tokens, users, sessions, grants, the audit log, over every way to carry a credential."""

import base64
import http.client
import json
import queue
import re
import ssl
import unittest

import grpc

import certificates
from pprof import Profile
from server import Cluster, RpcError, Server, eventually, now_ms, temporary_directory
from test_tls import TlsServer

ACCESS = "hearth.v1.AccessService/"
TYPES = [("cpu", "nanoseconds")]
JSON = {"Content-Type": "application/json"}
PASSWORD = "a long enough secret"


def profile(value=1):
    p = Profile(TYPES, time_ns=now_ms() * 1_000_000)
    p.add(["main", "work"], [value])
    return p.encode()


def bearer(token):
    return {"Authorization": "Bearer " + token}


class AccessServer:
    """A server with tokens and users, and calls of its AccessService."""

    def __init__(self, *options, **arguments):
        self.server = Server("--auth", "token,user", "--multitenancy", *options, **arguments)
        self.address = "127.0.0.1:%d" % self.server.port
        self.root = self.setup_token()

    def setup_token(self):
        found = eventually(lambda: re.search(r"\n    (hearth_\w+)\n", self.server.log()), what="the setup token")
        return found.group(1)

    def post(self, path, message, headers):
        status, head, body = self.server.http("POST", path, json.dumps(message).encode(), {**JSON, **headers})
        return status, head, json.loads(body or b"{}")

    def access(self, method, message, token=None):
        return self.post("/" + ACCESS + method, message, bearer(token or self.root))[::2]

    def must(self, method, message, token=None):
        status, answer = self.access(method, message, token)
        if status != 200:
            raise AssertionError("%s: %d %s" % (method, status, answer))
        return answer

    def token(self, *grants, name="test", **more):
        """A token with grants (tenant, role[, selector])."""
        members = [dict(zip(("tenant", "role", "selector"), grant)) for grant in grants]
        return self.must("CreateToken", {"name": name, "grants": members, **more})

    def stop(self):
        self.server.stop()


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hearth = AccessServer()
        cls.server = cls.hearth.server
        cls.writer = cls.hearth.token(("red", "ingest"))["token"]
        cls.reader = cls.hearth.token(("red", "viewer"))["token"]

    @classmethod
    def tearDownClass(cls):
        cls.hearth.stop()

    def types(self, headers):
        return self.hearth.post("/querier.v1.QuerierService/ProfileTypes", {}, headers)[0]

    def test_nothing_is_shown_without_a_credential(self):
        for path in ("/metrics", "/api/v1/status/buildinfo", "/pyroscope/labels", "/metrics/rules"):
            status, head, body = self.server.http("GET", path)
            self.assertEqual(status, 401, path)
            self.assertIn("Bearer", head["www-authenticate"])
            self.assertNotIn(b"hearth_", body.replace(b"Bearer hearth_...", b""))
        for path in ("/ready", "/healthz"):
            self.assertEqual(self.server.http("GET", path)[0], 200, path)

    def test_a_token_is_accepted_in_the_header_of_each_protocol(self):
        basic = base64.b64encode(b"anybody:" + self.reader.encode()).decode()
        for headers in (
            bearer(self.reader),
            {"Authorization": "Basic " + basic},
            {"DD-API-KEY": self.reader},
            {"authentication": self.reader},
        ):
            self.assertEqual(self.types(headers), 200, headers)
        self.server.call("querier.v1.QuerierService/ProfileTypes", [], [("authorization", "Bearer " + self.reader)])
        self.server.call("querier.v1.QuerierService/ProfileTypes", [], [("authentication", self.reader)])

    def test_wrong_tokens_are_refused(self):
        changed = self.reader[:-1] + ("A" if self.reader[-1] != "A" else "B")
        for token in ("", "x", changed, self.reader[:-1], self.reader + "A", self.reader.upper()):
            self.assertIn(self.types(bearer(token)), (401, 429), token)
        with self.assertRaises(RpcError) as caught:
            self.server.call("querier.v1.QuerierService/ProfileTypes", [], [("authorization", "Bearer " + changed)])
        self.assertIn(caught.exception.code, ("unauthenticated", "resource_exhausted"))

    def test_a_role_gives_its_rights_and_no_others(self):
        push = lambda token: self.server.push(
            profile(), {"__name__": "process_cpu", "service_name": "s"}, metadata=[("authorization", "Bearer " + token)]
        )
        push(self.writer)
        with self.assertRaises(RpcError) as caught:
            push(self.reader)
        self.assertEqual(caught.exception.code, "permission_denied")
        self.assertIn("ingest", caught.exception.message)
        self.assertEqual(self.types(bearer(self.writer)), 403)
        self.assertEqual(self.types(bearer(self.reader)), 200)

    def test_the_header_chooses_only_among_the_credentials_tenants(self):
        both = self.hearth.token(("red", "viewer"), ("blue", "viewer"))["token"]
        self.assertEqual(self.types(bearer(both)), 400)  # which of them?
        for tenant, expected in (("red", 200), ("blue", 200), ("green", 403), ("nobody-has-this", 403)):
            self.assertEqual(self.types({**bearer(both), "X-Scope-OrgID": tenant}), expected, tenant)
        everywhere = self.hearth.token(("*", "viewer"))["token"]
        self.assertEqual(self.types({**bearer(everywhere), "X-Scope-OrgID": "green"}), 200)

    def test_refusals_do_not_reveal_whether_a_tenant_exists(self):
        answers = [
            self.hearth.post(
                "/querier.v1.QuerierService/ProfileTypes", {}, {**bearer(self.reader), "X-Scope-OrgID": tenant}
            )[2]["message"].replace(tenant, "T")
            for tenant in ("blue", "never-seen")
        ]
        self.assertEqual(answers[0], answers[1])

    def test_a_deleted_token_ends_at_once(self):
        made = self.hearth.token(("red", "viewer"), name="short")
        self.assertEqual(self.types(bearer(made["token"])), 200)
        self.hearth.must("DeleteToken", {"id": made["id"]})
        self.assertEqual(self.types(bearer(made["token"])), 401)
        self.assertEqual(self.hearth.access("DeleteToken", {"id": made["id"]})[0], 404)

    def test_a_token_expires(self):
        made = self.hearth.token(("red", "viewer"), expiresMs=str(now_ms() + 1500))
        self.assertEqual(self.types(bearer(made["token"])), 200)
        eventually(lambda: self.types(bearer(made["token"])) == 401, what="the end of the token")

    def test_a_rotated_token_stays_valid_for_the_overlap(self):
        old = self.hearth.token(("red", "viewer"), name="rotated")
        new = self.hearth.must("RotateToken", {"id": old["id"], "overlapMs": "2000"})
        self.assertEqual(self.types(bearer(old["token"])), 200)
        self.assertEqual(self.types(bearer(new["token"])), 200)
        eventually(lambda: self.types(bearer(old["token"])) == 401, what="the end of the old token")
        self.assertEqual(self.types(bearer(new["token"])), 200)

    def test_a_rotated_token_lives_as_long_as_the_old_one_was_to(self):
        def rotated(old, **request):
            made = self.hearth.must("RotateToken", {"id": old["id"], "overlapMs": "60000", **request})
            listed = {t["id"]: t for t in self.hearth.must("ListTokens", {})["tokens"]}[made["id"]]
            self.assertEqual(made.get("expiresMs"), listed.get("expiresMs"))
            return int(made.get("expiresMs", 0)) and int(made["expiresMs"]) - int(listed["createdMs"])

        token = lambda **request: self.hearth.token(("red", "viewer"), **request)
        hour = lambda: token(expiresMs=str(now_ms() + 3_600_000))
        self.assertAlmostEqual(rotated(hour()), 3_600_000, delta=5000)
        self.assertAlmostEqual(rotated(hour(), expiresMs=str(now_ms() + 60_000)), 60_000, delta=5000)
        self.assertEqual(rotated(hour(), neverExpires=True), 0)
        self.assertEqual(rotated(token()), 0)
        self.assertGreater(rotated(token(expiresMs=str(2**63 - 1))), 2**62)
        both = {"id": token()["id"], "neverExpires": True, "expiresMs": str(now_ms() + 60_000)}
        self.assertEqual(self.hearth.access("RotateToken", both)[0], 400)

    def test_a_use_is_listed_after_credentials_were_changed(self):
        used = self.hearth.token(("red", "viewer"))
        self.assertEqual(self.types(bearer(used["token"])), 200)
        self.hearth.token(("red", "viewer"))
        tokens = {t["id"]: t for t in self.hearth.must("ListTokens", {})["tokens"]}
        self.assertIn("lastUsedMs", tokens[used["id"]])

    def test_a_list_of_tokens_shows_no_secret(self):
        status, _, body = self.server.http("POST", "/" + ACCESS + "ListTokens", b"{}", {**JSON, **bearer(self.hearth.root)})
        self.assertEqual(status, 200)
        self.assertNotIn(self.reader.encode(), body)
        self.assertNotIn(self.reader.split("_")[2].encode(), body)
        self.assertIn("createdBy", json.loads(body)["tokens"][0])

    def test_an_administrator_of_one_tenant_gives_no_more_than_it_has(self):
        admin = self.hearth.token(("red", "admin"), name="red admin")["token"]
        for tenant, expected in (("red", 200), ("blue", 403), ("*", 403)):
            grant = {"tenant": tenant, "role": "viewer"}
            status, _ = self.hearth.access("CreateToken", {"name": "t", "grants": [grant]}, admin)
            self.assertEqual(status, expected, tenant)
        names = {g["tenant"] for t in self.hearth.must("ListTokens", {}, admin)["tokens"] for g in t["grants"]}
        self.assertEqual(names, {"red"})
        self.assertEqual(self.hearth.access("CreateUser", {"name": "eve", "password": PASSWORD}, admin)[0], 403)
        self.assertEqual(self.hearth.access("ListUsers", {}, admin)[0], 403)

    def test_the_server_as_a_whole_needs_a_grant_for_all_tenants(self):
        red, everywhere = self.reader, self.hearth.token(("*", "viewer"))["token"]
        narrowed = self.hearth.token(("*", "viewer", '{team="x"}'))["token"]
        for token, expected in ((red, 403), (narrowed, 403), (everywhere, 200)):
            self.assertEqual(self.server.http("GET", "/metrics", headers=bearer(token))[0], expected)
        self.assertEqual(self.server.http("GET", "/api/v1/status/config", headers=bearer(everywhere))[0], 403)

    def test_figures_of_the_whole_database_are_for_administrators_of_all_tenants(self):
        others = [self.reader, *(self.hearth.token(grant)["token"] for grant in (("red", "admin"), ("*", "viewer")))]
        others.append(self.hearth.token(("*", "admin", '{team="x"}'))["token"])
        ask = lambda method, token: self.hearth.post(
            "/hearth.v1.AdminService/" + method, {}, {**bearer(token), "X-Scope-OrgID": "red"}
        )[::2]
        for token in others:
            status, answer = ask("Status", token)
            self.assertEqual((status, answer.pop("restricted")), (200, True))
            self.assertLessEqual(set(answer), {"hasBuilder", "lagMs"})
            self.assertEqual(ask("Doctor", token)[0], 403)
        status, answer = ask("Status", self.hearth.root)
        self.assertGreater(len(answer["tables"]), 5)
        self.assertNotIn("restricted", answer)
        self.assertGreater(len(ask("Doctor", self.hearth.root)[1]["checks"]), 5)

    def test_bad_grants_are_refused_with_the_reason(self):
        for grant, word in (
            ({"tenant": "red", "role": "king"}, "role"),
            ({"tenant": "a/b", "role": "viewer"}, "character"),
            ({"tenant": "", "role": "viewer"}, "tenant"),
            ({"tenant": "red", "role": "viewer", "selector": "{a="}, "selector"),
        ):
            status, answer = self.hearth.access("CreateToken", {"name": "t", "grants": [grant]})
            self.assertEqual(status, 400, grant)
            self.assertIn(word, answer["message"])

    def test_who_am_i_returns_the_subject_and_its_grants(self):
        answer = self.hearth.must("WhoAmI", {}, self.reader)
        self.assertTrue(answer["subject"].startswith("token:"))
        self.assertEqual(answer["grants"][0]["role"], "viewer")
        self.assertEqual(self.hearth.post("/" + ACCESS + "WhoAmI", {}, {})[0], 401)

    def test_changes_are_in_the_audit_log(self):
        made = self.hearth.token(("blue", "viewer"), name="audited")
        self.types({**bearer(made["token"]), "X-Scope-OrgID": "red"})
        events = self.hearth.must("AuditLog", {"action": "/" + ACCESS + "CreateToken"})["events"]
        self.assertIn(made["id"], events[0]["object"])
        self.assertEqual(events[0]["outcome"], "ok")
        self.assertEqual(events[0]["address"], "127.0.0.1")
        refused = lambda: [
            e
            for e in self.hearth.must("AuditLog", {"outcome": "permission_denied"}).get("events", [])
            if e["subject"] == "token:" + made["id"]
        ]
        eventually(refused, what="the refusal in the audit log")
        admin = self.hearth.token(("blue", "admin"))["token"]
        self.assertEqual({e["tenant"] for e in self.hearth.must("AuditLog", {}, admin).get("events", [])} - {"blue"}, set())
        self.assertEqual(self.hearth.access("AuditLog", {}, made["token"])[0], 403)

    def test_the_audit_log_is_for_administrators_of_the_whole_tenant(self):
        narrow = self.hearth.token(("green", "admin"), ("red", "admin", '{team="web"}'))["token"]
        viewer = self.hearth.token(("green", "viewer"))["token"]
        refused = bearer(viewer) | {"X-Scope-OrgID": "red"}
        self.assertEqual(self.hearth.post("/querier.v1.QuerierService/ProfileTypes", {}, refused)[0], 403)
        events = lambda: self.hearth.must("AuditLog", {"tenant": "red"}).get("events", [])
        eventually(events, what="the refusal in the audit log")
        self.assertEqual(self.hearth.access("AuditLog", {"tenant": "green"}, narrow)[0], 200)
        status, answer = self.hearth.access("AuditLog", {"tenant": "red"}, narrow)
        self.assertEqual(status, 403, answer)
        self.assertIn("only a part of the tenant", answer["message"])

    def test_an_administrator_of_one_tenant_finds_its_changes_in_the_audit_log(self):
        admin = self.hearth.token(("green", "admin"))["token"]
        grant = {"tenant": "green", "role": "viewer"}
        made = self.hearth.must("CreateToken", {"name": "dashboards", "grants": [grant]}, admin)
        given = self.hearth.must("AddGrant", {"subject": "group:green", **grant}, admin)
        self.hearth.must("DeleteToken", {"id": made["id"]}, admin)
        self.hearth.must("DeleteGrant", {"id": given["id"]}, admin)
        events = self.hearth.must("AuditLog", {"action": "/" + ACCESS}, admin).get("events", [])
        methods = [e["action"].rpartition("/")[2] for e in events]
        self.assertEqual(methods, ["DeleteGrant", "DeleteToken", "AddGrant", "CreateToken"])
        self.assertEqual({e["tenant"] for e in events}, {"green"})

    def test_the_log_of_the_server_has_no_secret(self):
        for token in (self.writer, self.reader):
            self.assertNotIn(token, self.server.log())


class Streams(unittest.TestCase):
    def test_a_stream_ends_when_its_token_is_deleted(self):
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        made = hearth.token(("red", "ingest"))
        channel = grpc.insecure_channel(hearth.address)
        self.addCleanup(channel.close)
        messages = queue.Queue()
        call = channel.stream_unary("/skywalking.v3.EventService/collect").future(
            iter(messages.get, None), metadata=[("authentication", made["token"])], timeout=60
        )
        handled = lambda: 'hearth_stream_messages_total{method="skywalking.v3.EventService/collect"} 1' in (
            hearth.server.http("GET", "/metrics", headers=bearer(hearth.root))[2].decode()
        )
        messages.put(b"")
        eventually(handled, what="the first message")
        hearth.must("DeleteToken", {"id": made["id"]})
        messages.put(b"")
        self.assertEqual(call.exception().code(), grpc.StatusCode.UNAUTHENTICATED)
        messages.put(None)


class Users(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hearth = AccessServer("--session-idle", "1h")
        cls.server = cls.hearth.server
        cls.hearth.must("CreateUser", {"name": "alice", "password": PASSWORD})
        cls.hearth.must("AddGrant", {"subject": "user:alice", "tenant": "red", "role": "viewer"})

    @classmethod
    def tearDownClass(cls):
        cls.hearth.stop()

    def login(self, user="alice", password=PASSWORD, headers=None):
        return self.hearth.post("/api/v1/login", {"user": user, "password": password}, headers or {})

    def cookie(self, headers=None):
        status, head, _ = self.login(headers=headers)
        self.assertEqual(status, 200)
        return head["set-cookie"]

    def types(self, cookie, headers=None):
        origin = {"Origin": "http://" + self.hearth.address}
        headers = {"Cookie": cookie.split(";")[0], **(origin if headers is None else headers)}
        return self.hearth.post("/querier.v1.QuerierService/ProfileTypes", {}, headers)[0]

    def test_a_log_in_gives_a_cookie_that_scripts_and_other_sites_cannot_use(self):
        cookie = self.cookie()
        for word in ("HttpOnly", "SameSite=Lax", "Path=/"):
            self.assertIn(word, cookie)
        self.assertEqual(self.types(cookie), 200)
        for origin in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
            self.assertEqual(self.types(cookie, origin), 403, origin)
        status, _, _ = self.server.http("GET", "/pyroscope/labels", headers={"Cookie": cookie.split(";")[0]})
        self.assertEqual(status, 200)  # reading changes nothing

    def test_a_session_works_behind_a_proxy_that_ends_tls(self):
        host = {"Host": "hearth.example"}
        for told in ({"Origin": "https://hearth.example"}, {"X-Forwarded-Proto": "https"}):
            cookie = self.cookie({**host, **told})
            self.assertTrue(cookie.startswith("__Host-hearth_session=") and cookie.endswith("; Secure"), cookie)
        for origin, expected in (("https://hearth.example", 200), ("https://evil.example", 403)):
            self.assertEqual(self.types(cookie, {**host, "Origin": origin}), expected, origin)

    def test_a_form_of_another_site_cannot_log_in(self):
        status, _, _ = self.server.http(
            "POST", "/api/v1/login", b'{"user": "alice", "password": "x"}', {"Content-Type": "text/plain"}
        )
        self.assertEqual(status, 400)

    def test_logging_out_ends_the_session(self):
        cookie = self.cookie()
        origin = {"Origin": "http://" + self.hearth.address, "Cookie": cookie.split(";")[0]}
        status, head, _ = self.hearth.post("/api/v1/logout", {}, origin)
        self.assertEqual(status, 200)
        self.assertIn("Max-Age=0", head["set-cookie"])
        self.assertEqual(self.types(cookie), 401)

    def test_logging_out_everywhere_ends_all_sessions(self):
        cookies = [self.cookie(), self.cookie()]
        self.hearth.must("EndSessions", {"subject": "user:alice"})
        self.assertEqual([self.types(c) for c in cookies], [401, 401])

    def test_a_new_password_and_a_disabled_user_end_sessions(self):
        self.hearth.must("CreateUser", {"name": "bob", "password": PASSWORD})
        self.hearth.must("AddGrant", {"subject": "user:bob", "tenant": "red", "role": "viewer"})
        log_in = lambda password: self.login("bob", password)
        cookie = log_in(PASSWORD)[1]["set-cookie"]
        self.assertEqual(self.types(cookie), 200)
        self.hearth.must("SetPassword", {"name": "bob", "password": PASSWORD + "2"})
        self.assertEqual(self.types(cookie), 401)
        self.assertEqual(log_in(PASSWORD)[0], 401)
        cookie = log_in(PASSWORD + "2")[1]["set-cookie"]
        self.hearth.must("DisableUser", {"name": "bob", "disabled": True})
        self.assertEqual(self.types(cookie), 401)
        self.assertEqual(log_in(PASSWORD + "2")[0], 401)

    def test_weak_passwords_and_strange_names_are_refused(self):
        for name, password in (("x", "short"), ("alice2", "alice2 and more words"), ("a b", PASSWORD), ("", PASSWORD)):
            self.assertEqual(self.hearth.access("CreateUser", {"name": name, "password": password})[0], 400)
        self.assertEqual(self.hearth.access("CreateUser", {"name": "alice", "password": PASSWORD})[0], 409)

    def test_a_user_is_not_an_administrator(self):
        cookie = self.cookie()
        origin = {"Origin": "http://" + self.hearth.address, "Cookie": cookie.split(";")[0]}
        self.assertEqual(self.hearth.post("/" + ACCESS + "ListUsers", {}, origin)[0], 403)
        answer = self.hearth.post(
            "/" + ACCESS + "SetPassword", {"name": "alice", "password": PASSWORD + "!", "oldPassword": "wrong"}, origin
        )
        self.assertEqual(answer[0], 403)


class Listeners(unittest.TestCase):
    """A plain listener for everybody, and one with TLS that asks for tokens or certificates."""

    @classmethod
    def setUpClass(cls):
        directory = temporary_directory()
        cls.ca = certificates.Authority(directory, "ca")
        cls.files = cls.ca.sign("server", "/CN=localhost")
        cls.client = cls.ca.sign("client", "/CN=agent/O=Shop")
        cls.server = TlsServer(
            *cls.files, "--listen", "https://127.0.0.1:0?auth=token,mtls,user", "--tls-client-ca-file", cls.ca.file,
            "--tls-client-auth", "request", "--multitenancy",
        )
        ports = re.findall(r"addr=127\.0\.0\.1:(\d+) scheme=https", cls.server.log())
        cls.server.tls_port = int(ports[1])

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def types(self, headers=None, cert=None):
        headers = {**JSON, "X-Scope-OrgID": "red", **(headers or {})}
        return self.server.https("POST", "/querier.v1.QuerierService/ProfileTypes", self.ca.file, b"{}", headers, cert)[0]

    def ask(self, method, message):
        """By the plain listener, where everybody may do everything."""
        status, _, body = self.server.http("POST", "/" + ACCESS + method, json.dumps(message).encode(), JSON)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def test_tokens_without_tls_on_an_address_of_others_are_warned_of(self):
        # For hearthd, a name other than "localhost" may be any machine's.
        server = Server("--listen", "127.0.0.1:0?auth=token", "--listen", "LOCALHOST:0?auth=token", "--auth", "token")
        self.addCleanup(server.stop)
        warned = [line for line in server.log().splitlines() if "can be read on their way" in line]
        self.assertEqual([re.search(r"listen=(\S+)", line).group(1).strip('"') for line in warned], ["LOCALHOST:0?auth=token"])
        self.assertEqual([line for line in self.server.log().splitlines() if "can be read on their way" in line], [])

    def test_each_listener_has_its_own_way_to_authenticate(self):
        self.assertEqual(self.types(), 401)
        self.assertEqual(self.types(cert=self.client), 403)  # known, but without any role
        made = self.ask("CreateToken", {"name": "t", "grants": [{"tenant": "red", "role": "viewer"}]})
        self.assertEqual(self.types(bearer(made["token"])), 200)
        status, _, _ = self.server.http(
            "POST", "/querier.v1.QuerierService/ProfileTypes", b"{}", {**JSON, "X-Scope-OrgID": "red"}
        )
        self.assertEqual(status, 200)

    def test_a_client_certificate_has_the_roles_of_its_names(self):
        subject = "cert:subject:O=Shop,CN=agent"
        id = self.ask("AddGrant", {"subject": subject, "tenant": "red", "role": "viewer"})["id"]
        self.assertEqual(self.types(cert=self.client), 200)
        self.assertEqual(self.types({"X-Scope-OrgID": "blue"}, self.client), 403)
        channel = self.server.secure_channel(self.ca.file, *self.client)
        self.addCleanup(channel.close)
        call = channel.unary_unary("/querier.v1.QuerierService/ProfileTypes")
        call(b"", metadata=[("x-scope-orgid", "red")], timeout=20)
        self.ask("DeleteGrant", {"id": id})
        self.assertEqual(self.types(cert=self.client), 403)

    def test_a_session_over_tls_has_a_cookie_for_tls_only(self):
        self.ask("CreateUser", {"name": "tess", "password": PASSWORD})
        body = json.dumps({"user": "tess", "password": PASSWORD}).encode()
        context = ssl.create_default_context(cafile=self.ca.file)
        connection = http.client.HTTPSConnection("localhost", self.server.tls_port, context=context, timeout=60)
        self.addCleanup(connection.close)
        connection.request("POST", "/api/v1/login", body, JSON)
        cookie = connection.getresponse().getheader("Set-Cookie")
        self.assertTrue(cookie.startswith("__Host-hearth_session="))
        self.assertIn("; Secure", cookie)

    def test_authentication_options_that_cannot_work_are_refused_at_the_start(self):
        for options, word in (
            (("--auth", "mtls"), "https"),
            (("--auth", "proxy"), "proxy-user-header"),
            (("--auth", "proxy", "--proxy-user-header", "X-User"), "proxy-trusted"),
            (("--auth", "proxy", "--proxy-user-header", "X-User", "--proxy-trusted", "10.0.0.0/99"), "10.0.0.0/99"),
            (("--auth", "token", "--proxy-trusted", "10.0.0.0/99"), "10.0.0.0/99"),
            (("--auth", "magic"), "magic"),
            (("--admin-token", "short"), "32"),
        ):
            with self.assertRaisesRegex(AssertionError, word):
                Server(*options, wait=False)


class Proxy(unittest.TestCase):
    def test_headers_count_only_from_a_trusted_proxy(self):
        for trusted, expected in (("127.0.0.0/8", 200), ("10.0.0.0/8", 401)):
            server = Server(
                "--auth", "token,proxy", "--proxy-user-header", "X-User", "--proxy-groups-header", "X-Groups",
                "--proxy-trusted", trusted, "--admin-token", "0123456789" * 4,
            )
            self.addCleanup(server.stop)
            admin = {**JSON, **bearer("0123456789" * 4)}
            for subject in ("proxy:eve", "group:sre"):
                grant = json.dumps({"subject": subject, "tenant": "*", "role": "viewer"}).encode()
                self.assertEqual(server.http("POST", "/" + ACCESS + "AddGrant", grant, admin)[0], 200)
            for headers in ({"X-User": "eve"}, {"X-User": "max", "X-Groups": "dev, sre"}):
                self.assertEqual(server.http("GET", "/pyroscope/labels", headers=headers)[0], expected, headers)
            if expected == 200:
                self.assertEqual(server.http("GET", "/pyroscope/labels", headers={"X-User": "max"})[0], 403)
                self.assertEqual(server.http("GET", "/pyroscope/labels", headers={"X-Groups": "sre"})[0], 401)


class Guesses(unittest.TestCase):
    def test_guessing_passwords_is_stopped_and_named_in_the_audit_log(self):
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        hearth.must("CreateUser", {"name": "alice", "password": PASSWORD})
        login = lambda password: hearth.post("/api/v1/login", {"user": "alice", "password": password}, {})
        statuses = [login("wrong password %d" % i)[0] for i in range(22)]
        self.assertEqual(statuses[:20], [401] * 20)
        self.assertEqual(statuses[20:], [429] * 2)
        self.assertEqual(login(PASSWORD)[0], 429)  # the right one, too
        events = lambda: [e for e in hearth.must("AuditLog", {"action": "login"}).get("events", [])]
        seen = eventually(events, what="the guesses in the audit log")
        self.assertEqual(seen[0]["subject"], "user:alice")

    def test_unknown_users_and_wrong_passwords_have_one_answer(self):
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        hearth.must("CreateUser", {"name": "alice", "password": PASSWORD})
        login = lambda user: hearth.post("/api/v1/login", {"user": user, "password": "wrong password"}, {})[::2]
        self.assertEqual(login("alice"), login("nobody"))


class Proxies(unittest.TestCase):
    """Requests of 127.0.0.1, which is a trusted proxy or not."""

    def serve(self, trusted):
        hearth = AccessServer(
            "--auth", "token,user,proxy", "--proxy-user-header", "X-Forwarded-User",
            "--proxy-groups-header", "X-Forwarded-Groups", "--proxy-trusted", trusted,
        )
        self.addCleanup(hearth.stop)
        for subject in ("proxy:bob", "group:sre"):
            hearth.must("AddGrant", {"subject": subject, "tenant": "red", "role": "viewer"})
        return hearth

    def types(self, hearth, headers):
        return hearth.post("/querier.v1.QuerierService/ProfileTypes", {}, headers)[0]

    def test_a_trusted_proxy_names_users_and_groups(self):
        hearth = self.serve("10.0.0.0/8,127.0.0.0/8")
        for headers, expected in (
            ({"X-Forwarded-User": "bob"}, 200),
            ({"x-forwarded-user": "eve"}, 403),
            ({"X-Forwarded-User": "eve", "X-Forwarded-Groups": "dev, sre"}, 200),
            ({"X-Forwarded-Groups": "sre"}, 401),
            ({"X-Forwarded-User": ""}, 401),
            ({}, 401),
        ):
            self.assertEqual(self.types(hearth, headers), expected, headers)
        metadata = [("x-forwarded-user", "bob")]
        hearth.server.call("querier.v1.QuerierService/ProfileTypes", [], metadata)

    def test_headers_of_other_addresses_are_ignored(self):
        hearth = self.serve("10.0.0.0/8")
        self.assertEqual(self.types(hearth, {"X-Forwarded-User": "bob", "X-Forwarded-For": "10.0.0.1"}), 401)

    def test_failures_are_those_of_the_proxys_client_whatever_the_way_of_authentication(self):
        self.check_failures(self.serve("127.0.0.1"))
        without_names = AccessServer("--proxy-trusted", "127.0.0.1")
        self.addCleanup(without_names.stop)
        self.check_failures(without_names)

    def check_failures(self, hearth):
        hearth.must("CreateUser", {"name": "alice", "password": PASSWORD})
        login = lambda user, password, client: hearth.post(
            "/api/v1/login", {"user": user, "password": password}, {"X-Forwarded-For": "192.0.2.9, " + client}
        )[0]
        self.assertEqual([login("u%d" % i, "wrong password", "203.0.113.1") for i in range(21)], [401] * 20 + [429])
        self.assertEqual(login("alice", PASSWORD, "203.0.113.1"), 429)
        self.assertEqual(login("alice", PASSWORD, "203.0.113.2"), 200)
        events = lambda: hearth.must("AuditLog", {"subject": "user:alice"}).get("events", [])
        seen = eventually(lambda: len(events()) == 2 and events(), what="the log-ins in the audit log")
        self.assertEqual({e["address"] for e in seen}, {"203.0.113.1", "203.0.113.2"})


    def test_the_audit_log_has_the_proxys_client_where_nobody_has_to_log_in_too(self):
        server = Server("--proxy-trusted", "127.0.0.1")
        self.addCleanup(server.stop)
        ask = lambda method, message: server.http(
            "POST", "/" + ACCESS + method, json.dumps(message).encode(), {**JSON, "X-Forwarded-For": "203.0.113.7"}
        )
        self.assertEqual(ask("CreateToken", {"name": "a", "grants": [{"tenant": "*", "role": "viewer"}]})[0], 200)
        events = lambda: json.loads(ask("AuditLog", {"action": "/" + ACCESS + "CreateToken"})[2]).get("events", [])
        self.assertEqual(eventually(events, what="the token in the audit log")[0]["address"], "203.0.113.7")


class Setup(unittest.TestCase):
    def test_the_setup_token_ends_when_another_administrator_exists(self):
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        admin = hearth.token(("*", "admin"), name="admin")["token"]
        self.assertEqual(hearth.access("WhoAmI", {})[0], 401)
        hearth.root = admin
        self.assertEqual(hearth.access("WhoAmI", {})[0], 200)

    def test_the_setup_token_stays_until_the_user_with_the_role_exists(self):
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        hearth.must("AddGrant", {"subject": "user:alice", "tenant": "*", "role": "admin"})
        hearth.must("CreateUser", {"name": "bob", "password": PASSWORD})
        hearth.must("WhoAmI", {})
        hearth.must("CreateUser", {"name": "alice", "password": PASSWORD})
        self.assertEqual(hearth.access("WhoAmI", {})[0], 401)

    def test_a_server_whose_administrators_cannot_call_offers_a_setup_token(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        first = AccessServer(database_url=cluster.url())
        self.addCleanup(first.stop)
        first.root = first.token(("*", "admin"), expiresMs=now_ms() + 5000)["token"]
        first.must("CreateUser", {"name": "alice", "password": PASSWORD})
        first.must("DisableUser", {"name": "alice", "disabled": True})
        first.must("AddGrant", {"subject": "user:alice", "tenant": "*", "role": "admin"})
        eventually(lambda: first.access("WhoAmI", {})[0] == 401, what="the end of the token")
        second = AccessServer(database_url=cluster.url())
        self.addCleanup(second.stop)
        second.must("WhoAmI", {})

    def test_the_last_administrator_who_can_call_stays(self):
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        hearth.root = hearth.token(("*", "admin"), name="admin")["token"]
        short = hearth.token(("*", "admin"), expiresMs=now_ms() + 1000)["token"]
        hearth.must("AddGrant", {"subject": "user:nobody", "tenant": "*", "role": "admin"})
        own = hearth.must("WhoAmI", {})["subject"]
        grants = {g["subject"]: g["id"] for g in hearth.must("ListGrants", {})["grants"]}
        eventually(lambda: hearth.access("WhoAmI", {}, short)[0] == 401, what="the end of the other token")
        self.assertEqual(hearth.access("DeleteGrant", {"id": grants[own]})[0], 400)
        hearth.must("DeleteGrant", {"id": grants["user:nobody"]})

    def test_the_last_administrator_stays(self):
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        hearth.root = hearth.token(("*", "admin"), name="admin")["token"]
        hearth.must("AddGrant", {"subject": "user:alice", "tenant": "*", "role": "admin"})
        grants = {g["subject"]: g["id"] for g in hearth.must("ListGrants", {})["grants"]}
        hearth.must("DeleteGrant", {"id": grants.pop("user:alice")})
        (last,) = grants.values()
        status, answer = hearth.access("DeleteGrant", {"id": last})
        self.assertEqual(status, 400)
        self.assertIn("last", answer["message"])
        hearth.must("WhoAmI", {})

    def test_no_other_address_is_opened_without_a_way_to_authenticate(self):
        with self.assertRaisesRegex(AssertionError, "everybody who reaches it may do everything; set --auth token"):
            Server("--listen", "0.0.0.0:0", wait=False)

    def test_two_servers_share_credentials(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        first = AccessServer(database_url=cluster.url())
        self.addCleanup(first.stop)
        second = Server("--auth", "token", "--multitenancy", database_url=cluster.url())
        self.addCleanup(second.stop)
        made = first.token(("red", "viewer"))
        ask = lambda: second.http(
            "POST", "/querier.v1.QuerierService/ProfileTypes", b"{}", {**JSON, **bearer(made["token"])}
        )[0]
        eventually(lambda: ask() == 200, what="the token on the other server")
        first.must("DeleteToken", {"id": made["id"]})
        eventually(lambda: ask() == 401, what="its end on the other server")


if __name__ == "__main__":
    unittest.main()
