"""SIGHUP reads the files of secrets again: tokens of agents and administrators, the client of OpenID Connect."""

import os
import pathlib
import shutil
import signal
import unittest
import urllib.parse

from agents import Instance
from issuer import Issuer
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

        # Without the option, agents need none.
        self.configure("{}\n")
        self.assertIn('changed="agent-token, agent-token-file"', self.reload(server))
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


if __name__ == "__main__":
    unittest.main()
