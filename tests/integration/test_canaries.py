"""Secrets are shown nowhere: each has an unmistakable value here, and every output of hearthd is searched for it.

A new secret is a line in SECRETS. Searched are: log, /metrics, the routes of configuration, /ready, errors of starts that
fail, --print-config, arguments and environment of all processes (hearthd, its starter, PostgreSQL), the log of PostgreSQL,
and dumps of memory.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

import grpc

from pprof import Profile
from server import (
    HEARTH, HEARTHD, Cluster, RpcError, Server, eventually, server_environment, sql, temporary_directory, unless_sanitized,
)

NO_DATABASE = "postgresql://user:%s@127.0.0.1:1/nothing"

# Option, and a value with %s where the secret stands. Options that need a database of their own are tested without.
SECRETS = [
    ("agent-token", "%s"),
    ("database-url", NO_DATABASE),
    ("read-database-url", NO_DATABASE),
]

# Texts that look like a database URL to a person; what libpq makes of them may not be shown either.
BROKEN_URLS = [
    "postgresql://user:%s@@host/db", "postgresql://user:%s/x@host/db", "postgresql://user:x/%s@host/db",
    "postgresql://user:x@%s@127.0.0.1:1/db", "postgresql://user:%s%%zz@host/db", "postgres://user:a?%s@host/db",
    "postgresql://user:%s@host:port/db", "host=h password %s", "host=h password='%s", "user:%s@host/db",
    "postgresql://user:%s", "postgresql://user:x#%s@host",
]

PLACES = ("flag", "two words", "environment", "file", "credential", "configuration")

SCRAPE = """
scrape_configs:
  - job_name: canaries
    bearer_token: %s
    scrape_interval: 1s
    scrape_timeout: 1s
    static_configs:
      - targets: ['127.0.0.1:1']
  - job_name: canaries of a file
    bearer_token_file: %s
    static_configs:
      - targets: ['127.0.0.1:1']
"""

PAGES = (
    "/metrics", "/ready", "/healthz", "/config", "/api/v1/status/config", "/api/v1/status/config/default",
    "/api/v1/status/config/diff", "/api/v1/status/buildinfo", "/debug/pprof/cmdline", "/nothing",
)


def canary(number):
    return "CANARY%06dqXz" % number


class Planted:
    """Arguments and environment that plant a secret at a place."""

    numbers = iter(range(1, 1_000_000))

    def __init__(self, directory, option, form, place):
        self.canary = canary(next(self.numbers))
        self.arguments, self.environment = [], {}
        value = form.replace("%s", self.canary)
        path = os.path.join(directory, self.canary[6:12])
        if place == "flag":
            self.arguments = ["--%s=%s" % (option, value)]
        elif place == "two words":
            self.arguments = ["--" + option, value]
        elif place == "environment":
            self.environment["HEARTH_" + option.upper().replace("-", "_")] = value
        elif place == "configuration":
            write(path, "%s = %s\n" % (option, value))
            self.arguments = ["--config", path]
        else:
            write(path, value + "\n")
            self.arguments = ["--%s-file" % option, path]
            if place == "credential":
                self.arguments[1] = "credential:" + os.path.basename(path)
                self.environment["CREDENTIALS_DIRECTORY"] = directory


def write(path, text):
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)


def children(pid):
    """The process and its descendants."""
    found = {pid}
    for _ in range(4):
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int(entry.read_text().rsplit(")", 1)[1].split()[1])
                if parent in found:
                    found.add(int(entry.parent.name))
    return found


def outputs(server):
    """{name: bytes} of all that hearthd shows while it runs."""
    found = {}
    for page in PAGES:
        status, headers, body = server.http("GET", page)
        found[page] = ("%d %r\n" % (status, headers)).encode() + body
    for pid in children(server.process.pid):
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                found["%d %s" % (pid, name)] = pathlib.Path("/proc/%d/%s" % (pid, name)).read_bytes()
    postgres = pathlib.Path(server.directory, "data/postgres.log")
    if postgres.exists():
        found["postgres.log"] = postgres.read_bytes()
    return found


def agent_call(server, token):
    call = server.channel.unary_unary("/skywalking.v3.ManagementService/keepAlive")
    with contextlib.suppress(grpc.RpcError):
        call(b"", timeout=10, metadata=[("authentication", token)])


class Canaries(unittest.TestCase):
    def setUp(self):
        self.directory = temporary_directory()

    def assert_absent(self, canaries, found):
        for name, text in found.items():
            for planted in canaries:
                at = text.find(planted.encode())
                self.assertEqual(at, -1, "%s is in %s: %r" % (planted, name, text[max(0, at - 60):at + 60]))

    def test_running_servers_show_no_secret_wherever_it_was_given(self):
        for place in PLACES:
            with self.subTest(place):
                self.run_with(place)

    def run_with(self, place):
        planted = [Planted(self.directory, option, form, place) for option, form in SECRETS if option != "read-database-url"]
        arguments = [word for each in planted for word in each.arguments]
        if place == "configuration":  # there is one such file
            path = os.path.join(self.directory, "all")
            write(path, "".join(pathlib.Path(each.arguments[1]).read_text() for each in planted))
            arguments = ["--config", path]
        scrape, bearers = os.path.join(self.directory, "scrape.yml"), [canary(900_001), canary(900_002)]
        write(os.path.join(self.directory, "bearer"), bearers[1])
        write(scrape, SCRAPE % (bearers[0], os.path.join(self.directory, "bearer")))
        environment = {name: value for each in planted for name, value in each.environment.items()}
        canaries = [each.canary for each in planted] + bearers

        log = os.path.join(self.directory, "log")
        server = Bare(arguments + ["--log-level", "debug", "--scrape-config", scrape], environment, log)
        self.addCleanup(server.end)
        agent_call(server, "wrong")
        with contextlib.suppress(RpcError):
            server.push(Profile([("samples", "count")]).add(["main"], [1]).encode(), {"__name__": "process_cpu"})
        found = outputs(server)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: re.search("configuration (not )?reloaded", server.log()), what="a reload")
        self.assertEqual(server.end(), 0)
        found["log"] = server.log().encode()
        self.assertIn(b"database-url", found["/api/v1/status/config"])
        self.assertIn(b"not ready", found["log"])
        self.assert_absent(canaries, found)

        # The same, printed.
        done = subprocess.run(
            [HEARTHD, "--print-config"] + arguments, capture_output=True, env=server_environment(environment)
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b'agent-token: "***"', done.stdout)
        self.assert_absent(canaries, {"--print-config": done.stdout + done.stderr})

    def test_starts_that_fail_show_no_secret(self):
        places = {"agent-token": ("flag", "environment", "file", "configuration"), "database-url": ("flag", "configuration"),
                  "read-database-url": ("file",)}
        for option, _ in SECRETS:
            for place in places[option]:
                for form in BROKEN_URLS if option.endswith("url") else ["%s\n%s", "\x01%s"]:
                    planted = Planted(self.directory, option, form.replace("%%", "%"), place)
                    with self.subTest(option=option, place=place, form=form):
                        self.fail_to_start(planted)

    def fail_to_start(self, planted):
        database = [] if "--database-url" in str(planted.arguments) else ["--data-dir", "/dev/null/none"]
        try:
            done = subprocess.run(
                [HEARTHD, "--listen", "127.0.0.1:0", *database, *planted.arguments], capture_output=True, timeout=3,
                env=server_environment(planted.environment),
            )
            told = done.stdout + done.stderr
        except subprocess.TimeoutExpired as error:  # it is a URL after all, of a host that is not there
            told = (error.stdout or b"") + (error.stderr or b"")
        self.assertTrue(told)
        self.assert_absent([planted.canary], {"output": told})

    def test_a_wrong_password_is_not_shown(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        sql(cluster.url(), "CREATE ROLE stranger LOGIN PASSWORD 'right'")
        pathlib.Path(cluster.data, "pg_hba.conf").write_text("local all stranger scram-sha-256\nlocal all all trust\n")
        sql(cluster.url(), "SELECT pg_reload_conf()")
        word = canary(900_003)
        url = "postgresql://stranger:%s@/postgres?host=%s" % (word, cluster.directory)
        server = Bare(["--database-url", url, "--log-level", "debug"], {}, os.path.join(self.directory, "log"))
        self.addCleanup(server.end)
        eventually(lambda: "password authentication failed" in server.log(), what="a refused password")
        found = outputs(server)
        self.assertEqual(server.end(), 0)
        self.assert_absent([word], {**found, "log": server.log().encode()})

    @unittest.skipUnless(shutil.which("gdb") and os.geteuid() == 0, "memory is dumped by gdb as root")
    @unless_sanitized("a dump has terabytes of shadow memory")
    def test_memory_that_root_dumps_has_no_secret(self):
        """By default nothing of the memory is in a dump; with --dumpable, all but the pages of secrets."""
        for options in ([], ["--dumpable"]):
            places = ("flag", "environment", "configuration") if options else PLACES
            planted = [Planted(self.directory, "agent-token", "%s", place) for place in places]
            for each in planted:
                log, dump = os.path.join(self.directory, "log"), os.path.join(self.directory, "core")
                marker = "MARKER" + each.canary[6:]
                server = Bare(
                    options + each.arguments + ["--database-url", NO_DATABASE % "x", "--multitenancy", "--agent-tenant", marker],
                    each.environment, log,
                )
                # A dump needs no symbols, which take gdb most of its time.
                done = subprocess.run(
                    ["gdb", "-nx", "-batch", "--readnever", "-iex", "set auto-solib-add off", "-p", str(server.process.pid),
                     "-ex", "generate-core-file " + dump],
                    capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
                )
                self.assertTrue(os.path.exists(dump), done.stdout + done.stderr)
                memory = pathlib.Path(dump).read_bytes()
                os.unlink(dump)
                self.assertEqual(server.end(), 0)
                # An option that is no secret shows what a dump has.
                self.assertEqual(marker.encode() in memory, bool(options), (options, len(memory)))
                self.assert_absent([each.canary], {"a dump with %s of %s" % (options, each.arguments): memory})

    def test_a_crash_leaves_no_secret_behind(self):
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
        if pattern.startswith("|") or "/" in pattern:
            self.skipTest("core files are written elsewhere: " + pattern)
        os.chmod(self.directory, 0o777)
        for options in ([], ["--dumpable"]):
            word = canary(900_010 + len(options))
            server = Bare(
                options + ["--agent-token", word, "--database-url", NO_DATABASE % "x"], {},
                os.path.join(self.directory, "log"), cwd=self.directory, core=True,
            )
            server.process.send_signal(signal.SIGABRT)
            server.process.wait(60)
            cores = [path for path in pathlib.Path(self.directory).iterdir() if path.name.startswith("core")]
            if not options:
                self.assertEqual(cores, [])
            elif not cores:
                self.skipTest("no core file can be written here")
            for path in cores:
                self.assert_absent([word], {path.name: path.read_bytes()})
                path.unlink()

    def test_the_client_hides_the_password_from_the_list_of_processes(self):
        word, told = canary(900_020), os.path.join(self.directory, "told")
        psql = os.path.join(self.directory, "psql")
        pathlib.Path(psql).write_text(
            "#!/bin/sh\ntr '\\0' ' ' </proc/$PPID/cmdline >%s\necho \"$0 $*\" >>%s\n"
            "echo \"password $PGPASSWORD\" >%s.password\ncat >/dev/null\n" % (told, told, told)
        )
        os.chmod(psql, 0o755)
        server = Server()
        self.addCleanup(server.stop)
        for form in (["--database-url", "postgresql://u:%s%%40@h/db"], ["--database-url=postgresql://u:%s%%40@h/db"]):
            command = [HEARTH, "sql", "--url", "http://127.0.0.1:%d" % server.port, "--materialize", "{}", "--since", "5m",
                       "--step", "5m", "--type", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"]
            done = subprocess.run(
                command + [text.replace("%s", word).replace("%%", "%") for text in form], capture_output=True, text=True,
                env=server_environment({"PATH": self.directory + ":" + os.environ["PATH"]}), timeout=60,
            )
            self.assertTrue(os.path.exists(told), done.stderr)
            self.assertIn("postgresql://u@h/db", pathlib.Path(told).read_text())
            self.assertEqual(pathlib.Path(told + ".password").read_text(), "password %s@\n" % word)
            self.assert_absent([word], {"ps": pathlib.Path(told).read_bytes(), "stderr": (done.stdout + done.stderr).encode()})
            os.unlink(told)
        for url in ("host=h password=%s", "postgresql://u@h/db?password=%s", "postgresql://u:x@%s@h/db", "postgresql://u:%s%%z@h/db"):
            done = subprocess.run(
                command + ["--database-url", url.replace("%s", word).replace("%%", "%")], capture_output=True, text=True,
                env=server_environment({"PATH": self.directory + ":" + os.environ["PATH"]}), timeout=60,
            )
            self.assertNotEqual(done.returncode, 0)
            self.assertFalse(os.path.exists(told))
            self.assert_absent([word], {"stderr": (done.stdout + done.stderr).encode()})


class Bare(Server):
    """A server that need not become ready, with nothing but these arguments."""

    def __init__(self, arguments, environment, log, cwd=None, core=False):
        self.arguments, self.cwd, self.core = arguments, cwd, core
        pathlib.Path(log).write_text("")
        super().__init__(directory=os.path.dirname(log), wait=False, env=environment)

    def start(self, wait=True):
        self.log_from = 0
        self.log_path = os.path.join(self.directory, "log")
        with open(self.log_path, "ab") as log:
            limits = ["prlimit", "--core=unlimited"] if self.core else []
            self.process = subprocess.Popen(
                [*limits, HEARTHD, "--listen", "127.0.0.1:0", *self.arguments],
                stderr=log, stdout=log, cwd=self.cwd, env=server_environment(self.env),
            )
        self.port = self._listening_port()
        self.channel = grpc.insecure_channel("127.0.0.1:%d" % self.port)

    def end(self):
        if self.process.poll() is None:
            return self.terminate()
        return self.process.returncode


if __name__ == "__main__":
    unittest.main()
