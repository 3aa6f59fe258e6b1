"""How hearth reaches a server: contexts, variables, options, headers and proxies, each against real servers."""

import json
import os
import pathlib
import socket
import threading
import unittest

from certificates import Authority
from server import in_threads, temporary_directory
from test_access import AccessServer
from test_cli import AUTH, FAILED, NO_DATA, OK, SERVER, USAGE, hearth
from test_tls import TlsServer


class ConnectProxy:
    """A proxy that connects by CONNECT to one address, whatever name is asked for; with a password if one is given."""

    def __init__(self, port, credentials=None):
        self.port, self.credentials, self.asked = port, credentials, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client:
            self.connect(client)

    def connect(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            got = client.recv(65536)
            if not got:
                return
            head += got
        self.asked.append(head.split(b"\r\n")[0].decode())
        if self.credentials and ("Basic " + self.credentials).encode() not in head:
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            in_threads([lambda: self.copy(client, server), lambda: self.copy(server, client)])

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Contexts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(temporary_directory())
        cls.access = AccessServer()
        cls.url = "http://" + cls.access.address
        cls.token = cls.write("token", cls.access.root)

    @classmethod
    def tearDownClass(cls):
        cls.access.stop()

    def setUp(self):
        self.home = pathlib.Path(temporary_directory())
        self.file = self.home / "hearth" / "config.yaml"

    @classmethod
    def write(cls, name, text, mode=0o600):
        path = cls.directory / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def ran(self, *arguments, code=OK, **variables):
        done = hearth(*arguments, env={"XDG_CONFIG_HOME": str(self.home), **variables})
        self.assertEqual(done.code, code, done.err + done.out)
        return done

    def refused(self, code, words, *arguments, **variables):
        done = self.ran(*arguments, code=code, **variables)
        self.assertEqual(done.out, "")
        self.assertIn(words, done.err.splitlines()[-1])

    def settings(self, *arguments, **variables):
        rows = json.loads(self.ran("context", "show", "--origin", "-o", "json", *arguments, **variables).out)["settings"]
        return {row["setting"]: (row["value"], row["origin"], row.get("source")) for row in rows}

    def configure(self, text, mode=0o600):
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(text)
        self.file.chmod(mode)

    def test_a_context_reaches_its_server_with_its_token(self):
        self.ran("context", "add", "shop", "--url", self.url, "--token-file", self.token)
        self.assertIn("token:", self.ran("whoami").out)
        self.ran("context", "add", "typed", "--url", self.url, "--token-command", "cat '%s'" % self.token)
        self.assertIn("token:", self.ran("whoami", "--context", "typed").out)
        self.assertIn("token:", self.ran("whoami", HEARTH_CONTEXT="typed").out)
        self.ran("context", "add", "header", "--url", self.url,
                 "-H", "Authorization: Bearer %s" % pathlib.Path(self.token).read_text().strip())
        self.assertIn("token:", self.ran("whoami", "--context", "header").out)
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)
        self.assertRegex(self.ran("context").out, r"\* shop +http://127.*\n  typed .*\n  header ")

    def test_contexts_are_used_and_deleted(self):
        self.refused(NO_DATA, "there are no contexts yet", "context", "list")
        self.ran("context", "add", "a", "--url", "http://a.example")
        self.ran("context", "add", "staging", "--url", "http://b.example", "--tenant", "it's b")
        self.refused(FAILED, "there is a context a already", "context", "add", "a", "--url", "http://c.example")
        self.refused(USAGE, "the header x-a is given twice", "context", "add", "b", "--url", "http://c.example",
                     "-H", "X-A: 1", "-H", "x-a: 2")
        self.ran("context", "use", "staging")
        self.assertEqual(self.settings()["tenant"], ("it's b", "file", "context staging"))
        self.refused(NO_DATA, 'has no context "stagin"; did you mean staging?', "context", "use", "stagin")
        self.refused(USAGE, 'has no context "stagin"; did you mean staging?', "top", "--context", "stagin")
        self.ran("context", "delete", "staging")
        self.assertEqual(json.loads(self.ran("context", "list", "-o", "json").out)["contexts"],
                         [{"name": "a", "current": False, "url": "http://a.example"}])
        self.assertEqual(self.settings(), {"url": ("http://127.0.0.1:4040", "default", None)})

    def test_options_count_before_variables_before_the_file(self):
        self.ran("context", "add", "c", "--url", "http://file.example", "--tenant", "file", "--timeout", "7s")
        variables = {"HEARTH_TENANT": "variable"}
        self.assertEqual(self.settings()["tenant"], ("file", "file", "context c"))
        self.assertEqual(self.settings(**variables)["tenant"], ("variable", "environment", "HEARTH_TENANT"))
        self.assertEqual(self.settings("--tenant", "option", **variables)["tenant"], ("option", "flag", "--tenant"))
        self.assertEqual(self.settings()["context"], ("c", "file", "context c"))
        self.assertEqual(self.settings(HEARTH_CONTEXT="c")["context"], ("c", "environment", "HEARTH_CONTEXT"))
        self.assertEqual(self.settings()["timeout"], ("7s", "file", "context c"))

    def test_credentials_of_a_context_are_for_its_server_alone(self):
        self.ran("context", "add", "c", "--url", "http://file.example", "--token-file", self.token, "-H", "X-Key: 1")
        self.assertEqual(set(self.settings()), {"context", "url", "token-file", "header X-Key"})
        self.assertEqual(set(self.settings(HEARTH_URL="http://other.example")), {"context", "url"})
        done = self.ran("whoami", "--context", "c", HEARTH_URL=self.url, code=AUTH)
        self.assertIn("note: the credentials of the context c are not sent to %s, which HEARTH_URL names" % self.url, done.err)

    def test_a_token_of_another_source_replaces_that_of_the_context(self):
        self.ran("context", "add", "c", "--url", self.url, "--token-command", "false")
        self.refused(USAGE, "token-command of the context c: it failed with exit code 1", "whoami")
        self.assertIn("token:", self.ran("whoami", "--token-file", self.token).out)
        self.assertIn("token:", self.ran("whoami", HEARTH_TOKEN_FILE=self.token).out)

    def test_secrets_are_never_printed(self):
        secret = "Zaubertrank"
        self.ran("context", "add", "c", "--url", "http://c.example", "--token-command", "echo " + secret, "-H", "X-Key: " + secret)
        for command in (["list"], ["show"], ["show", "--origin"], ["show", "-o", "json"], ["show", "--token", secret]):
            done = self.ran("context", *command)
            self.assertNotIn(secret, done.out + done.err)

    def test_mistakes_in_the_file_are_named_with_their_line(self):
        for text, words in (
            ("contexts:\n  a:\n    url: http://a\n    tenat: x\n", 'config.yaml: line 4: "tenat" is unknown here; did you mean tenant?'),
            ("contexts:\n  a:\n    url: http://a\n    token: x\n", "line 4: \"token\" is unknown here: token-file names a file"),
            ("context: {}\n", 'line 1: "context" is unknown here'),
            ("contexts: {a: {tenant: x}}\n", "the context a has no url"),
            ("contexts: {a: {url: 'http://a', headers: {te: x}}}\n", "the header te cannot be given"),
            ("contexts: {a: {url: 'http://a', headers: {x: y, X: z}}}\n", "the header X is given twice"),
            ("contexts: {a: {url: 'http://a', headers: {x:y: z}}}\n", '"x:y" is no name of a header'),
            ("contexts: {a: {url: 'http://a', token-file: x}}\n", "token-file must be an absolute path"),
            ("contexts: {'a b': {url: 'http://a'}}\n", '"a b" is no name of a context'),
            ("contexts: {a: {url: x}, a: {url: y}}\n", 'line 1: "a" is already set on line 1'),
            ("contexts: {a: {url: \"x\\ny\"}}\n", "expected a text of one line"),
            ("contexts: [\n", "line "),
            ("# %s\n" % ("x" * (1 << 20)), "not a regular file of at most 1024 KiB"),
        ):
            self.configure(text)
            self.refused(USAGE, words, "whoami")

    def test_a_file_that_others_may_change_or_read_is_refused(self):
        plain, secret = "contexts: {a: {url: 'http://a'}}\n", "contexts: {a: {url: 'http://a', token-command: x}}\n"
        self.configure(plain, 0o644)
        self.ran("context", "list")
        self.configure(secret, 0o644)
        self.refused(USAGE, "others may read the file, which has secrets (mode 0644): chmod 600 ", "context", "list")
        self.configure(plain, 0o620)
        self.refused(USAGE, "others may write the file (mode 0620): chmod 600 ", "context", "list")

    def test_headers_that_cannot_be_sent_are_refused_by_name(self):
        for header, words in (
            ("Connection: x", "the header connection cannot be given"), ("TE: x", "the header te cannot be given: gRPC sets it"),
            ("grpc-timeout: 1S", "names of gRPC begin with grpc-"), ("x-bin: x", "names that end with -bin"),
            ("X-Scope-OrgID: a", "the tenant sets it"), ("Proxy-Authorization: x", "into the URL of the proxy"),
            ("a b: c", '"a b" is no name of a header'), ("x: \u00e4", "visible ASCII"), ("x:", "visible ASCII"), ("x", "NAME: VALUE"),
            ("x: " + "y" * 5000, "more than 4096 bytes"),
        ):
            self.refused(USAGE, words, "whoami", "--url", self.url, "--header", header)
        self.refused(USAGE, "the header authorization is given already", "whoami", "--url", self.url, "--token-file", self.token,
                     "-H", "Authorization: Bearer x")

    def test_calls_pass_through_a_proxy(self):
        proxy = ConnectProxy(self.access.server.port)
        url = "http://hearth.example:4040"
        for variable in ("http_proxy", "grpc_proxy"):
            del proxy.asked[:]
            done = self.ran("whoami", "--url", url, "--token-file", self.token, **{variable: "http://%s/" % proxy.address})
            self.assertIn("token:", done.out)
            self.assertEqual(proxy.asked[:1], ["CONNECT hearth.example:4040 HTTP/1.1"])
        del proxy.asked[:]

        # Not for loopback, for exceptions, and for the other scheme.
        self.ran("whoami", "--url", self.url, "--token-file", self.token, http_proxy=proxy.address)
        for variables in ({"http_proxy": proxy.address, "NO_PROXY": "other, .example"}, {"HTTPS_PROXY": proxy.address}):
            self.ran("whoami", "--url", url, code=SERVER, **variables)
        self.assertEqual(proxy.asked, [])
        self.refused(USAGE, "the proxy is not http://HOST:PORT", "whoami", "--url", url, http_proxy="socks5://127.0.0.1:1")
        proxy.stop()

    def test_tls_passes_through_a_proxy_that_requires_a_password(self):
        authority = Authority(temporary_directory(), "ca")
        cert, key = authority.sign("server", "/CN=server", names="DNS:hearth.example")
        os.chmod(authority.directory, 0o755)
        server = TlsServer(cert, key)
        proxy = ConnectProxy(server.tls_port, "dXNlcjpwYXNzd29yZA==")  # user:password
        arguments = ["query", "labels", "--url", "https://hearth.example", "--ca-file", authority.file]
        done = self.ran(*arguments, code=NO_DATA, HTTPS_PROXY="http://user:password@" + proxy.address)
        self.assertIn("no profiles yet", done.err)
        self.assertEqual(proxy.asked[:1], ["CONNECT hearth.example:4040 HTTP/1.1"])
        done = self.ran(*arguments, code=SERVER, HTTPS_PROXY=proxy.address)
        self.assertNotIn("password@", done.err)
        proxy.stop()
        server.terminate()


if __name__ == "__main__":
    unittest.main()
