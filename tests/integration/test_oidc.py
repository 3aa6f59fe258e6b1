"""Callers that an OpenID Connect issuer knows: JWTs over every protocol, log-in of people, and issuers and clients that lie."""

import base64
import http.client
import json
import re
import secrets
import ssl
import time
import unittest
import urllib.parse

import certificates
from issuer import Issuer, Key, b64, hmac_signer
from server import RpcError, Server, eventually, temporary_directory
from test_access import AccessServer, bearer

TYPES = "querier.v1.QuerierService/ProfileTypes"
CALLBACK = "/api/v1/oidc/callback"


class OidcServer(AccessServer):
    """A server that knows one issuer, unless the options name others, or a file of the options does."""

    def __init__(self, issuer, *options, grants=(("oidc:robot", "viewer"),), issuers=None, in_file=False):
        known = () if in_file else ("--oidc-issuer", issuers or issuer.url, "--oidc-audience", "hearth")
        self.server = Server(
            "--auth", "token,oidc", "--multitenancy", *known, "--max-wrong-credentials", "1000", *options,
        )
        self.address = "127.0.0.1:%d" % self.server.port
        self.root = self.setup_token()
        for subject, role in grants:
            self.must("AddGrant", {"subject": subject, "tenant": "red", "role": role})

    def types(self, jwt):
        return self.post("/" + TYPES, {}, bearer(jwt))[0]

    def who(self, jwt):
        status, _, answer = self.post("/hearth.v1.AccessService/WhoAmI", {}, bearer(jwt))
        if status != 200:
            raise AssertionError("%d %s" % (status, answer))
        return answer["subject"]

    def refusal(self, jwt):
        status, _, answer = self.post("/" + TYPES, {}, bearer(jwt))
        return status, answer.get("message", "")

    def wait_for_keys(self, jwt, status=200):
        eventually(lambda: self.types(jwt) == status, what="the keys of the issuer")


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keys = {alg: Key(alg) for alg in ("RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA")}
        for alg in ("RS384", "RS512", "PS384", "PS512"):
            cls.keys[alg] = Key.__new__(Key)
            cls.keys[alg].alg, cls.keys[alg].kid, cls.keys[alg].bits = alg, alg, alg[2:]
            cls.keys[alg].private = cls.keys["RS256"].private
        cls.issuer = Issuer(*cls.keys.values())
        cls.hearth = OidcServer(cls.issuer, grants=(("oidc:robot", "viewer"), ("group:sre", "viewer")))
        cls.hearth.wait_for_keys(cls.issuer.jwt())

    @classmethod
    def tearDownClass(cls):
        cls.hearth.stop()
        cls.issuer.stop()

    def test_each_algorithm_is_verified(self):
        for alg, key in self.keys.items():
            jwt = self.issuer.jwt(key, jti=secrets.token_hex(4))
            self.assertEqual(self.hearth.types(jwt), 200, alg)
            self.assertEqual(self.hearth.types(jwt), 200, alg)  # remembered

    def test_a_changed_token_is_refused(self):
        for alg, key in self.keys.items():
            head, body, signature = self.issuer.jwt(key, jti=secrets.token_hex(4)).split(".")
            other = b64(json.dumps(self.issuer.claims(sub="admin")).encode())
            flipped = ("A" if signature[9] != "A" else "B").join((signature[:9], signature[10:]))
            for jwt in (head + "." + other + "." + signature, head + "." + body + "." + flipped, head + "." + body + "."):
                self.assertEqual(self.hearth.types(jwt), 401, alg)

    def test_a_token_is_accepted_in_the_header_of_each_protocol(self):
        jwt = self.issuer.jwt()
        basic = base64.b64encode(b"anybody:" + jwt.encode()).decode()
        for headers in (
            bearer(jwt), {"Authorization": "Basic " + basic}, {"DD-API-KEY": jwt}, {"authentication": jwt},
            {"authentication": "Bearer " + jwt},
        ):
            self.assertEqual(self.hearth.post("/" + TYPES, {}, headers)[0], 200, headers)
        for metadata in (("authorization", "Bearer " + jwt), ("authentication", jwt)):
            self.hearth.server.call(TYPES, [], [metadata])

    def test_groups_give_roles_too(self):
        jwt = self.issuer.jwt(sub="bob", groups=["dev", "sre"])
        self.assertEqual(self.hearth.types(jwt), 200)
        self.assertEqual(self.hearth.who(jwt), "oidc:bob")
        self.assertEqual(self.hearth.types(self.issuer.jwt(sub="bob", groups="sre")), 200)
        status, message = self.hearth.refusal(self.issuer.jwt(sub="bob", groups=["dev"]))
        self.assertEqual((status, "oidc:bob has no role" in message), (403, True), message)

    def test_no_claim_names_another_kind_of_subject(self):
        for claim in ("x\nuser:root", "a" * 300, "", None, 7, ["robot"], {"sub": "robot"}):
            self.assertEqual(self.hearth.types(self.issuer.jwt(sub=claim)), 401, claim)
        self.assertEqual(self.hearth.types(self.issuer.jwt(sub="user:root")), 403)


class Lies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.issuer = Issuer(Key("RS256"), Key("ES256"))
        cls.hearth = OidcServer(cls.issuer)
        cls.hearth.wait_for_keys(cls.issuer.jwt())

    @classmethod
    def tearDownClass(cls):
        cls.hearth.stop()
        cls.issuer.stop()

    def refused(self, jwt, *words):
        """A key that is not known is looked for first."""
        seen = lambda: [a for a in [self.hearth.refusal(jwt)] if a[0] != 503]
        status, message = eventually(seen, what="an answer")[0]
        self.assertEqual(status, 401, message)
        for word in words:
            self.assertIn(word, message)

    def test_expired_and_future_tokens_are_refused(self):
        now = int(time.time())
        self.refused(self.issuer.jwt(exp=now - 61), "expired")
        self.refused(self.issuer.jwt(exp=None), "exp")
        self.refused(self.issuer.jwt(nbf=now + 90), "not valid yet")
        self.refused(self.issuer.jwt(iat=now + 90), "not valid yet")
        self.refused(self.issuer.jwt(exp="soon"), "claims")
        self.assertEqual(self.hearth.types(self.issuer.jwt(exp=now - 30, nbf=now + 30, iat=now + 30)), 200)
        self.assertEqual(self.hearth.types(self.issuer.jwt(exp=now + 30.5)), 200)

    def test_tokens_for_another_audience_are_refused(self):
        self.refused(self.issuer.jwt(aud="other"), "audience")
        self.refused(self.issuer.jwt(aud=None), "audience")
        self.refused(self.issuer.jwt(aud=[]), "audience")
        self.refused(self.issuer.jwt(aud=["hearth2", "xhearth"]), "audience")
        self.assertEqual(self.hearth.types(self.issuer.jwt(aud=["other", "hearth"])), 200)

    def test_tokens_of_unlisted_issuers_are_refused(self):
        for url in ("http://127.0.0.1:1", self.issuer.url + "/", self.issuer.url.upper(), "", None):
            self.refused(self.issuer.jwt(iss=url), "not listed")

    def test_tokens_with_the_wrong_algorithm_are_refused(self):
        rsa, curve = self.issuer.keys
        self.refused(self.issuer.jwt(header={"alg": "none"}, sign=lambda text: b""), "algorithm")
        self.refused(self.issuer.jwt(header={"alg": "None"}, sign=lambda text: b""), "algorithm")
        self.refused(self.issuer.jwt(header={"alg": "HS256"}, sign=hmac_signer(rsa.public_pem())), "algorithm")
        self.refused(self.issuer.jwt(header={"alg": "ES256"}), "no key")  # the RSA key is no EC key
        self.refused(self.issuer.jwt(header={"alg": "PS256"}), "no key")  # the key is for RS256
        self.refused(self.issuer.jwt(curve, header={"alg": "RS256"}), "no key")
        self.refused(self.issuer.jwt(header={"alg": None}), "algorithm")
        self.refused(self.issuer.jwt(curve, sign=lambda text: bytes(64)), "signature")
        self.assertEqual(self.hearth.types(self.issuer.jwt(header={"kid": None})), 200)  # only one fits

    def test_tokens_with_a_bad_header_are_refused(self):
        self.refused(self.issuer.jwt(header={"crit": ["exp"]}), "critical")
        self.refused(self.issuer.jwt(header={"typ": "logout+jwt"}), "typ")
        self.refused(self.issuer.jwt(header={"kid": 7}), "header")
        self.refused(self.issuer.jwt(Key("RS256", self.issuer.keys[0].kid, number=1)), "signature")
        # A key that the token brings along, or names, is nobody's.
        own = Key("RS256", number=1)
        self.assertIn(
            self.hearth.types(self.issuer.jwt(own, header={"jwk": own.jwk(), "jku": "http://127.0.0.1:1/"})), (401, 503)
        )

    def test_malformed_tokens_are_refused(self):
        good = self.issuer.jwt()
        key = self.issuer.keys[0]
        self.refused("a.b")
        self.refused("a.b.c")
        self.refused("..", "header")
        self.refused(good + "=", "base64url")
        self.refused(good + ".x.y")
        self.refused(key.jwt(b"[]"), "claims")
        self.refused(key.jwt(b"{" * 9000), "claims")
        self.refused(key.jwt(b'{"a":' + b"[" * 8000), "claims")
        self.refused(key.jwt(b'{"sub": "a", "sub": "b"}'), "twice")
        self.refused(key.jwt(b'{"iss": "\xff"}'), "claims")
        self.refused(self.issuer.jwt(pad="x" * 20000), "bytes")
        self.assertEqual(self.hearth.types(good), 200)


class Guesses(unittest.TestCase):
    def test_forged_tokens_are_counted_and_right_ones_still_accepted(self):
        issuer = Issuer()
        self.addCleanup(issuer.stop)
        hearth = OidcServer(issuer, "--max-wrong-credentials", "3")
        self.addCleanup(hearth.stop)
        hearth.wait_for_keys(issuer.jwt())
        forged = [issuer.jwt(Key("RS256", issuer.keys[0].kid, number=1), jti=str(n)) for n in range(4)]
        self.assertEqual([hearth.types(jwt) for jwt in forged], [401, 401, 401, 429])
        self.assertEqual(hearth.types(issuer.jwt(jti="new")), 200)
        events = lambda: hearth.must("AuditLog", {"outcome": "resource_exhausted"}).get("events", [])
        eventually(events, what="the guesses in the audit log")


class Keys(unittest.TestCase):
    def setUp(self):
        self.issuer = Issuer()
        self.addCleanup(self.issuer.stop)

    def serve(self, *options, **more):
        hearth = OidcServer(self.issuer, *options, **more)
        self.addCleanup(hearth.stop)
        return hearth

    def fetches(self):
        return sum(path.endswith("/keys") for _, path, _, _ in self.issuer.requests)

    def test_new_keys_are_found_and_old_ones_end(self):
        hearth = self.serve("--oidc-refresh", "10s")
        old = self.issuer.jwt()
        hearth.wait_for_keys(old)
        self.issuer.keys = [Key("ES256")]
        new = self.issuer.jwt()
        hearth.wait_for_keys(new)
        self.assertIn(hearth.types(old), (401, 503))  # also what was remembered

    def test_unknown_keys_are_looked_for_seldom(self):
        hearth = self.serve()
        hearth.wait_for_keys(self.issuer.jwt())
        before = self.fetches()
        answers = [hearth.types(self.issuer.jwt(Key("ES256"))) for _ in range(40)]
        self.assertTrue(set(answers) <= {401, 503}, answers)
        self.assertLessEqual(self.fetches() - before, 3)
        self.assertEqual(hearth.types(self.issuer.jwt()), 200)

    def test_an_issuer_that_is_away_is_unavailable_until_it_answers(self):
        self.issuer.stop()
        hearth = self.serve()
        jwt = self.issuer.jwt()
        status, message = hearth.refusal(jwt)
        self.assertEqual(status, 503)
        self.assertIn("not known yet", message)
        self.assertIn("retry", message)
        with self.assertRaises(RpcError) as caught:
            hearth.server.call(TYPES, [], [("authorization", "Bearer " + jwt)])
        self.assertEqual(caught.exception.code, "unavailable")
        self.issuer.begin(self.issuer.port)
        hearth.wait_for_keys(jwt)

    def test_keys_hold_while_the_issuer_is_away_but_not_forever(self):
        hearth = self.serve("--oidc-refresh", "10s", "--oidc-keys-max-age", "15s")
        hearth.wait_for_keys(self.issuer.jwt())
        self.issuer.stop()
        eventually(lambda: "could not be fetched" in hearth.server.log(), what="a failed fetch")
        self.assertEqual(hearth.types(self.issuer.jwt(jti="new")), 200)
        eventually(lambda: hearth.types(self.issuer.jwt()) == 503, what="the end of the keys")
        self.issuer.begin(self.issuer.port)

    def test_a_bad_document_is_named_in_the_log_and_gives_no_keys(self):
        discovery = "/.well-known/openid-configuration"
        key = self.issuer.keys[0]

        def keys(*jwks):
            return lambda issuer: {"/keys": (200, {}, json.dumps({"keys": jwks}).encode())}

        def document(**changes):
            return lambda issuer: {discovery: (200, {}, json.dumps({**issuer.discovery(), **changes}).encode())}

        cases = [
            (document(issuer="https://login.example"), "its issuer is"),
            (lambda issuer: {discovery: (302, {"Location": self.issuer.url + discovery}, b"")}, "redirects are not followed"),
            (lambda issuer: {discovery: (200, {}, b"{" + b" " * 100000 + b"}")}, "more than"),
            (lambda issuer: {discovery: (200, {}, b"[1]")}, "JSON"),
            (document(jwks_uri="http://192.0.2.1/keys"), "not https"),
            (document(jwks_uri="file:///etc/passwd"), "not https"),
            (document(jwks_uri="https://10.0.0.1/"), "private network"),
            (lambda issuer: {"/keys": (200, {}, b'{"keys": [' + b" " * 300000 + b"]}")}, "more than"),
            (keys({"kty": "oct", "k": "c2VjcmV0", "kid": "a"}), "no key"),
            (keys(Key("RS256", bits=1024).jwk()), "no key"),
            (keys(key.jwk(e="AQ")), "no key"),
            (keys(key.jwk(use="enc")), "no key"),
        ]
        issuers = [Issuer(key) for _ in cases]
        for issuer, (answers, _) in zip(issuers, cases):
            self.addCleanup(issuer.stop)
            issuer.documents = answers(issuer)
        named = ",".join("i%d=%s" % (i, issuer.url) for i, issuer in enumerate(issuers))
        hearth = self.serve(issuers=named, grants=())
        lines = lambda issuer: [l for l in hearth.server.log().splitlines() if "be fetched" in l and issuer.url + " " in l]
        for issuer, (_, reason) in zip(issuers, cases):
            self.assertIn(reason, eventually(lambda: lines(issuer), what=reason)[0])
            self.assertEqual(hearth.types(issuer.jwt()), 503)
        self.assertEqual(self.issuer.requests, [])

    def test_a_server_stops_although_its_issuer_does_not_answer(self):
        def hang(handler, body):
            time.sleep(8)
            return 200, {}, b"{}"

        self.issuer.documents = {"/.well-known/openid-configuration": hang}
        hearth = OidcServer(self.issuer, grants=())
        eventually(lambda: self.issuer.requests, what="a request")
        began = time.monotonic()
        hearth.stop()
        self.assertLess(time.monotonic() - began, 7)

    def test_two_issuers_cannot_name_each_others_subjects(self):
        other = Issuer(Key(number=1))
        self.addCleanup(other.stop)
        hearth = self.serve(
            issuers="corp=%s,partner=%s" % (self.issuer.url, other.url),
            grants=(("oidc:corp:robot", "viewer"), ("group:corp:sre", "viewer")),
        )
        hearth.wait_for_keys(self.issuer.jwt())
        hearth.wait_for_keys(other.jwt(), 403)
        self.assertEqual(hearth.types(other.jwt(sub="x", groups=["sre", "corp:sre", "group:corp:sre"])), 403)
        self.assertEqual(hearth.types(other.jwt(sub="corp:robot")), 403)
        self.assertEqual(hearth.types(self.issuer.jwt(sub="x", groups=["sre"])), 200)
        # The key of one signs nothing for the other.
        self.assertIn(hearth.types(other.jwt(iss=self.issuer.url)), (401, 503))

    def test_options_choose_the_claims_of_subject_and_groups(self):
        hearth = self.serve(
            "--oidc-subject-claim", "email", "--oidc-groups-claim", "realm_access.roles",
            grants=(("oidc:a@example.com", "viewer"), ("group:sre", "viewer")),
        )
        hearth.wait_for_keys(self.issuer.jwt(email="a@example.com"))
        self.assertEqual(hearth.types(self.issuer.jwt(email="b@example.com", realm_access={"roles": ["sre"]})), 200)
        self.assertEqual(hearth.types(self.issuer.jwt(**{"email": "b@example.com", "realm_access.roles": ["sre"]})), 200)
        self.assertEqual(hearth.types(self.issuer.jwt(email="a@example.com", email_verified=True)), 200)
        for claims in ({}, {"email": "a@example.com", "email_verified": False}, {"email": "a@example.com", "email_verified": "x"}):
            self.assertEqual(hearth.types(self.issuer.jwt(**claims)), 401, claims)

    def test_options_that_contradict_each_other_are_refused(self):
        for options, reason in (
            ((), "needs an issuer"),
            (("--oidc-issuer", "http://login.example/"), "https"),
            (("--oidc-issuer", "https://u:p@login.example/"), "user name"),
            (("--oidc-issuer", "https://login.example/?a=b"), "arguments"),
            (("--oidc-issuer", "https://a.example,https://b.example"), "different names"),
            (("--oidc-issuer", "x=https://a.example,x=https://b.example"), "different names"),
            (("--oidc-issuer", "x=https://a.example,https://b.example"), "different names"),
            (("--oidc-issuer", "https://login.example"), "--oidc-audience"),
            (("--oidc-issuer", "https://login.example", "--oidc-keys-max-age", "1m"), "at least oidc-refresh"),
            (("--oidc-issuer", "https://login.example", "--oidc-client-id", "x"), "--oidc-redirect-url"),
        ):
            with self.assertRaisesRegex(AssertionError, reason):
                Server("--auth", "oidc", *options, wait=False)
        with self.assertRaisesRegex(AssertionError, "needs an issuer"):
            Server("--listen", "127.0.0.1:0?auth=oidc", wait=False)


class Logins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.issuer = Issuer()
        cls.options = (
            "--oidc-client-id", Issuer.CLIENT, "--oidc-client-secret", Issuer.SECRET,
            "--oidc-redirect-url", "http://hearth.example" + CALLBACK,
        )
        cls.hearth = OidcServer(cls.issuer, *cls.options, grants=(("group:sre", "viewer"),))
        cls.server = cls.hearth.server
        eventually(lambda: cls.server.http("GET", "/api/v1/oidc/login")[0] == 302, what="the documents of the issuer")

    @classmethod
    def tearDownClass(cls):
        cls.hearth.stop()
        cls.issuer.stop()

    def setUp(self):
        self.issuer.id_token_claims, self.issuer.discovery_changes, self.issuer.documents = {}, {}, {}

    def begin(self, path="/flame?query=a%26b"):
        """(URL of the issuer, cookie) of a log-in that has begun."""
        status, head, body = self.server.http("GET", "/api/v1/oidc/login?return=" + urllib.parse.quote(path, safe=""))
        self.assertEqual(status, 302, body)
        self.assertEqual(head["cache-control"], "no-store")
        for word in ("HttpOnly", "SameSite=Lax", "Max-Age=600"):
            self.assertIn(word, head["set-cookie"])
        return head["location"], head["set-cookie"].split(";")[0]

    def finish(self, answer, cookie=None, server=None):
        path = CALLBACK + "?" + urllib.parse.urlencode(answer)
        return (server or self.server).http("GET", path, headers={"Cookie": cookie} if cookie else {})

    def log_in(self, **more):
        url, cookie = self.begin()
        return self.finish(self.issuer.authorize(url)[1], cookie, **more)

    def refused(self, done, *words):
        status, head, body = done
        self.assertIn(status, (401, 403), body)
        self.assertNotIn("set-cookie", head)
        for word in words:
            self.assertIn(word, body.decode())

    def test_a_person_logs_in_and_out(self):
        url, cookie = self.begin()
        asked, answer = self.issuer.authorize(url)
        self.assertTrue(url.startswith(self.issuer.url + "/authorize?tenant=x&"))
        self.assertEqual((asked["response_type"], asked["client_id"]), ("code", Issuer.CLIENT))
        self.assertEqual(asked["code_challenge_method"], "S256")
        self.assertIn("openid", asked["scope"].split())
        self.assertEqual(asked["redirect_uri"], "http://hearth.example" + CALLBACK)
        status, head, body = self.finish(answer, cookie)
        self.assertEqual(status, 302, body)
        self.assertEqual(head["location"], "/flame?query=a%26b")
        # http.client joins the two cookies; the session's is one of them.
        session = re.search(r"hearth_session=[0-9a-f]+", self.cookies(answer, cookie))
        self.assertIsNotNone(session)
        headers = {"Cookie": session.group(), "Origin": "http://" + self.hearth.address}
        self.assertEqual(self.hearth.post("/" + TYPES, {}, headers)[0], 200)
        who = self.hearth.post("/hearth.v1.AccessService/WhoAmI", {}, headers)[2]
        self.assertEqual(who["subject"], "oidc:alice")
        self.assertEqual(self.hearth.post("/api/v1/logout", {}, headers)[0], 200)
        self.assertEqual(self.hearth.post("/" + TYPES, {}, headers)[0], 401)

    def cookies(self, answer, cookie):
        """All Set-Cookie of a log-in like this one."""
        url, cookie = self.begin()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
        path = CALLBACK + "?" + urllib.parse.urlencode(self.issuer.authorize(url)[1])
        connection.request("GET", path, headers={"Cookie": cookie})
        response = connection.getresponse()
        found = response.headers.get_all("Set-Cookie")
        connection.close()
        self.assertEqual(len(found), 2)
        self.assertTrue(any(c.startswith("hearth_login=;") and "Max-Age=0" in c for c in found), found)
        return ";".join(found)

    def test_another_server_completes_a_log_in(self):
        other = OidcServer(self.issuer, *self.options, grants=(("group:sre", "viewer"),))
        self.addCleanup(other.stop)
        eventually(lambda: other.server.http("GET", "/api/v1/oidc/login")[0] == 302, what="the documents of the issuer")
        self.assertEqual(self.log_in(server=other.server)[0], 302)

    def test_an_answer_of_the_issuer_is_valid_once_and_in_its_own_browser(self):
        url, cookie = self.begin()
        _, answer = self.issuer.authorize(url)
        self.refused(self.finish(answer), "not begun in this browser")
        self.refused(self.finish(answer, self.begin()[1]), "another log-in")
        middle = len(cookie) // 2
        flipped = "A" if cookie[middle] != "A" else "B"
        self.refused(self.finish(answer, cookie[:middle] + flipped + cookie[middle + 1 :]), "not begun")
        self.refused(self.finish({**answer, "state": ""}, cookie), "another log-in")
        self.refused(self.finish({**answer, "iss": "http://127.0.0.1:1"}, cookie), "another issuer")
        self.refused(self.finish({"state": answer["state"], "error": "access_denied"}, cookie), "access_denied")
        self.refused(self.finish({"state": answer["state"]}, cookie), "no code")
        self.assertEqual(self.finish(answer, cookie)[0], 302)
        self.refused(self.finish(answer, cookie), "refused the code")

    def test_id_tokens_of_other_log_ins_clients_and_times_are_refused(self):
        for claims in (
            {"nonce": "0" * 32}, {"nonce": None}, {"aud": "hearth"}, {"aud": "another-client"}, {"azp": "another-client"},
            {"exp": int(time.time()) - 3600}, {"iss": "http://127.0.0.1:1"}, {"sub": None},
        ):
            self.issuer.id_token_claims = claims
            self.refused(self.log_in())

    def test_a_user_without_a_role_gets_no_session(self):
        self.issuer.id_token_claims = {"sub": "mallory", "groups": []}
        self.refused(self.log_in(), "oidc:mallory has no role")
        events = lambda: [
            e for e in self.hearth.must("AuditLog", {"action": "login"}).get("events", []) if e["subject"] == "oidc:mallory"
        ]
        self.assertEqual(eventually(events, what="the refusal in the audit log")[0]["outcome"], "permission_denied")

    def test_a_log_in_returns_to_paths_of_this_server_only(self):
        for path in ("//evil.example", "https://evil.example", "/\\evil.example", "evil", "/\t/evil.example", "/a\r\nX: y", "/" + "a" * 2000):
            status, head, _ = self.server.http("GET", "/api/v1/oidc/login?return=" + urllib.parse.quote(path, safe=""))
            self.assertEqual(status, 400, path)
            self.assertNotIn("location", head)

    def test_an_issuer_that_fails_during_a_log_in_ends_it(self):
        for document, status in (
            ((500, {}, b"oops"), 503), ((200, {}, b"{}"), 503), ((200, {}, b"x" * 100000), 503),
            ((302, {"Location": "http://127.0.0.1:1/"}, b"{}"), 503), ((200, {}, b'{"id_token": "x"}'), 401),
        ):
            self.issuer.documents = {"/token": document}
            self.assertEqual(self.log_in()[0], status, document)

    def test_the_secret_is_sent_in_the_way_that_the_issuer_takes(self):
        self.issuer.discovery_changes = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        hearth = OidcServer(self.issuer, *self.options, grants=(("group:sre", "viewer"),))
        self.addCleanup(hearth.stop)
        eventually(lambda: hearth.server.http("GET", "/api/v1/oidc/login")[0] == 302, what="the documents of the issuer")
        self.assertEqual(self.log_in(server=hearth.server)[0], 302)
        form = [body for _, path, _, body in self.issuer.requests if path.endswith("/token")][-1]
        self.assertIn(b"client_secret=", form)

    def test_no_secret_is_shown(self):
        self.log_in()
        self.assertNotIn(Issuer.SECRET, self.server.log())
        config = self.server.http("GET", "/api/v1/status/config", headers=bearer(self.hearth.root))[2].decode()
        self.assertIn("oidc-client-secret", config)
        self.assertNotIn(Issuer.SECRET, config)


class Tls(unittest.TestCase):
    def test_a_user_logs_in_with_certificates_at_issuer_and_listener(self):
        directory = temporary_directory()
        ca = certificates.Authority(directory, "ca")
        issuer = Issuer(certificate=ca.sign("issuer", "/CN=localhost"))
        self.addCleanup(issuer.stop)
        cert, key = ca.sign("server", "/CN=localhost")
        options = (
            "--listen", "https://127.0.0.1:0?auth=oidc", "--tls-cert-file", cert, "--tls-key-file", key,
            "--oidc-client-id", Issuer.CLIENT, "--oidc-client-secret", Issuer.SECRET,
            "--oidc-redirect-url", "https://localhost" + CALLBACK,
        )
        hearth = OidcServer(issuer, *options, grants=())
        self.addCleanup(hearth.stop)
        eventually(lambda: "could not be fetched" in hearth.server.log(), what="an unknown authority")
        self.assertIn("SSL", hearth.server.log())

        hearth = OidcServer(issuer, *options, "--oidc-ca-file", ca.file, grants=(("group:sre", "viewer"),))
        self.addCleanup(hearth.stop)
        hearth.wait_for_keys(issuer.jwt(groups=["sre"]))
        port = int(re.search(r"addr=127\.0\.0\.1:(\d+) scheme=https", hearth.server.log()).group(1))

        def get(path, cookie=""):
            connection = http.client.HTTPSConnection("localhost", port, context=ssl.create_default_context(cafile=ca.file))
            self.addCleanup(connection.close)
            connection.request("GET", path, headers={"Cookie": cookie})
            return connection.getresponse()

        begun = get("/api/v1/oidc/login")
        cookie = begun.headers["Set-Cookie"]
        self.assertRegex(cookie, "^__Host-hearth_login=.*; Path=/; .*; Secure$")
        answer = issuer.authorize(begun.headers["Location"])[1]
        done = get(CALLBACK + "?" + urllib.parse.urlencode(answer), cookie.split(";")[0])
        session = [c for c in done.headers.get_all("Set-Cookie") if c.startswith("__Host-hearth_session=")][0]
        self.assertTrue(session.endswith("; Secure"))
        self.assertEqual(get("/pyroscope/labels", session.split(";")[0]).status, 200)


if __name__ == "__main__":
    unittest.main()
