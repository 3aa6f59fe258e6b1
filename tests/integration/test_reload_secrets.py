"""SIGHUP reads again: files of secrets, of agents, administrators and OpenID Connect, and its issuers and their rules."""

import collections
import os
import pathlib
import secrets
import shutil
import signal
import threading
import time
import unittest
import urllib.parse

from agents import Instance
from issuer import Issuer, Key
from server import RpcError, Server, eventually, temporary_directory
from test_access import bearer
from test_oidc import CALLBACK, TYPES, OidcServer

ADMIN = "an-administrator-with-32-bytes-or-more-"


class Files(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(temporary_directory())

    def write(self, name, text):
        """A file that hearthd's user can read, and no other but root."""
        path = self.directory / name
        path.write_text(text + "\n")
        path.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(path, "postgres")
        return str(path)

    def reload(self, server, line="configuration reloaded"):
        """The log from the reload on."""
        before = len(server.log())
        server.process.send_signal(signal.SIGHUP)
        return eventually(lambda: line in server.log()[before:] and server.log()[before:], what=line)


class Tokens(Files):
    def start(self, *options):
        """A server of the file hearthd.yaml."""
        server = Server("--config", str(self.directory / "hearthd.yaml"), *options, directory=str(self.directory))
        self.addCleanup(server.stop)
        return server

    def configure(self, text):
        (self.directory / "hearthd.yaml").write_text(text)

    @staticmethod
    def agent_is_refused(server, token):
        try:
            Instance(server, "s", "i", metadata=[("authentication", token)]).keep_alive()
        except RpcError as error:
            return error.code == "unauthenticated"
        return False

    def test_the_token_of_agents_follows_its_file(self):
        path = self.write("agent", "first")
        self.configure("agents: {agent-token-file: %s}\n" % path)
        server = self.start()
        refused = lambda *tokens: [self.agent_is_refused(server, token) for token in tokens]
        self.assertEqual(refused("first", "second"), [False, True])

        self.write("agent", "second")
        self.assertEqual(refused("first", "second"), [False, True])
        log = self.reload(server)
        self.assertIn("changed=agent-token needs_restart", log)
        self.assertNotIn("second", server.log())
        self.assertEqual(refused("first", "second"), [True, False])

        # Two lines are no secret: nothing changes. A file of root is not readable any more: the secret stays.
        self.write("agent", "third\nline")
        self.reload(server, "configuration not reloaded")
        self.assertEqual(refused("second", "third"), [False, True])
        if os.geteuid() == 0:
            self.write("agent", "third")
            shutil.chown(path, "root")
            self.assertIn("cannot read", self.reload(server))
            self.assertEqual(refused("second", "third"), [False, True])

        # In the configuration file itself.
        self.configure("agents: {agent-token: fourth}\n")
        self.assertIn('changed="agent-token, agent-token-file"', self.reload(server))
        self.configure("agents: {agent-token: fifth}\n")
        self.assertIn("changed=agent-token needs_restart", self.reload(server))
        self.assertEqual(refused("third", "fourth", "fifth"), [True, True, False])
        self.assertNotIn("fifth", server.log())

        # Without the option, agents need none.
        self.configure("{}\n")
        self.assertIn("changed=agent-token needs_restart", self.reload(server))
        self.assertEqual(refused("second", "anything"), [False, False])

    def test_the_token_of_administrators_follows_its_file(self):
        self.configure("listening: {admin-token-file: %s}\n" % self.write("admin", ADMIN + "1"))
        server = self.start("--auth", "token")
        headers = lambda number: {"Content-Type": "application/json", **bearer(ADMIN + number)}
        status = lambda number: server.http("POST", "/" + TYPES, b"{}", headers(number))[0]
        eventually(lambda: status("1") == 200, what="the credentials")

        self.write("admin", ADMIN + "2")
        self.reload(server)
        self.assertEqual((status("1"), status("2")), (401, 200))
        self.write("admin", "too short")
        self.assertIn("at least 32 bytes", self.reload(server, "configuration not reloaded"))
        self.assertEqual((status("1"), status("2")), (401, 200))


class OpenId(Files):
    def test_the_secret_of_the_client_and_the_keys_of_the_issuer_are_read_again(self):
        issuer = Issuer()
        self.addCleanup(issuer.stop)
        path = self.write("client", Issuer.SECRET)
        hearth = OidcServer(
            issuer, "--oidc-client-id", Issuer.CLIENT, "--oidc-client-secret-file", path,
            "--oidc-redirect-url", "http://hearth.example" + CALLBACK, grants=(("group:sre", "viewer"),),
        )
        self.addCleanup(hearth.stop)
        server = hearth.server
        eventually(lambda: server.http("GET", "/api/v1/oidc/login")[0] == 302, what="the documents of the issuer")

        def log_in():
            _, head, _ = server.http("GET", "/api/v1/oidc/login?return=/")
            answer = issuer.authorize(head["location"])[1]
            cookie = head["set-cookie"].split(";")[0]
            return server.http("GET", CALLBACK + "?" + urllib.parse.urlencode(answer), headers={"Cookie": cookie})[0]

        self.assertEqual(log_in(), 302)
        issuer.SECRET = "another-secret-of-the-client"
        self.assertNotEqual(log_in(), 302)
        self.write("client", issuer.SECRET)
        fetched = lambda: sum(method == "GET" for method, *_ in issuer.requests)
        before = fetched()
        self.reload(server)
        self.assertEqual(log_in(), 302)
        # Without a reload, the next fetch is after oidc-refresh, an hour.
        eventually(lambda: fetched() >= before + 2, what="the documents of the issuer again")
        self.write("client", "short")
        self.assertIn("oidc-client-secret has 5 bytes", self.reload(server, "configuration not reloaded"))
        self.assertEqual(log_in(), 302)

class Issuers(Files):
    """The options of OpenID Connect, in a file, and JWTs of two issuers."""

    def setUp(self):
        super().setUp()
        self.first, self.second = Issuer(), Issuer(Key(number=1))
        self.addCleanup(self.first.stop)
        self.addCleanup(self.second.stop)

    def configure(self, issuers, audience="hearth", more=""):
        text = "listening:\n  oidc-issuer: [%s]\n  oidc-audience: %s\n%s" % (", ".join(issuers), audience, more)
        (self.directory / "hearthd.yaml").write_text(text)

    def serve(self, grants):
        hearth = OidcServer(self.first, "--config", str(self.directory / "hearthd.yaml"), grants=grants, in_file=True)
        self.addCleanup(hearth.stop)
        return hearth

    def test_issuers_audience_and_claims_follow_the_file(self):
        self.configure([self.first.url])
        hearth = self.serve([("oidc:robot", "viewer"), ("oidc:corp:robot", "viewer"), ("oidc:corp:bob", "viewer"),
                             ("group:new:sre", "viewer")])
        jwt = self.first.jwt()
        hearth.wait_for_keys(jwt)
        self.assertEqual(hearth.types(self.second.jwt()), 401)

        # A second issuer: what is known of the first one holds, so its JWTs are never refused meanwhile.
        self.configure(["corp=" + self.first.url, "new=" + self.second.url])
        self.assertIn("changed=oidc-issuer needs_restart", self.reload(hearth.server))
        self.assertEqual(hearth.who(jwt), "oidc:corp:robot")
        hearth.wait_for_keys(self.second.jwt(groups=["sre"]))

        # Another audience and claim: JWTs that were right are verified again.
        self.configure(["corp=" + self.first.url], "other", "  oidc-subject-claim: email\n")
        self.reload(hearth.server)
        self.assertIn("audience", hearth.refusal(jwt)[1])
        self.assertEqual(hearth.who(self.first.jwt(aud="other", email="bob")), "oidc:corp:bob")
        self.assertIn("not listed", hearth.refusal(self.second.jwt(aud="other", groups=["sre"]))[1])

    def test_options_that_the_way_oidc_cannot_work_with_change_nothing(self):
        self.configure([self.first.url])
        hearth = self.serve([("oidc:robot", "viewer")])
        hearth.wait_for_keys(self.first.jwt())
        (self.directory / "hearthd.yaml").write_text("listening: {oidc-audience: other}\n")
        log = self.reload(hearth.server, "configuration not reloaded")
        self.assertIn("oidc-issuer", log)
        self.configure([self.first.url], more="  oidc-refresh: 1s\n")
        self.assertIn("at least 10s", self.reload(hearth.server, "configuration not reloaded"))
        self.assertEqual(hearth.types(self.first.jwt()), 200)

    def test_requests_go_on_while_the_issuers_are_replaced_again_and_again(self):
        self.configure([self.first.url])
        hearth = self.serve([("oidc:robot", "viewer")])
        hearth.wait_for_keys(self.first.jwt())
        stop, answers = threading.Event(), collections.Counter()

        def ask():
            while not stop.is_set():
                answers[hearth.types(self.first.jwt(jti=secrets.token_hex(4)))] += 1

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for k in range(8):
            name = "a=" if k % 2 == 0 else ""
            self.configure([name + self.first.url], more="  oidc-clock-skew: %ds\n" % (k + 1))
            self.reload(hearth.server)
        self.configure([self.first.url])
        self.reload(hearth.server)
        stop.set()
        for thread in threads:
            thread.join()
        # Under the name "a", the subject has no role.
        self.assertLessEqual(set(answers), {200, 403}, answers)
        self.assertGreater(answers[200], 0)
        self.assertEqual(hearth.types(self.first.jwt()), 200)

    def test_an_issuer_that_hangs_does_not_keep_a_reload_from_ending(self):
        self.configure([self.first.url])
        hearth = self.serve([("oidc:robot", "viewer")])
        hearth.wait_for_keys(self.first.jwt())
        asked = threading.Event()

        def hang(handler, body):
            asked.set()
            time.sleep(8)
            return 200, {}, b"{}"

        self.second.documents = {"/.well-known/openid-configuration": hang}
        self.configure(["a=" + self.first.url, "b=" + self.second.url])
        self.reload(hearth.server)
        self.assertTrue(asked.wait(20))
        self.configure([self.first.url])
        began = time.monotonic()
        self.reload(hearth.server)
        eventually(lambda: hearth.types(self.first.jwt()) == 200, what="the issuers of the last reload")
        self.assertLess(time.monotonic() - began, 6)


if __name__ == "__main__":
    unittest.main()
