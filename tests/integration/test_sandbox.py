"""What hearthd gives up at its start: root, capabilities, system calls, dumps. Started by root, as a package's user may."""

import errno
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import unittest

import injected_calls
import prometheus
from pprof import Profile
from questions import CPU
from server import (
    HEARTHD, Server, as_user, eventually, now_ms, server_environment, temporary_directory, unless_sanitized,
)

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
IS_ROOT = os.geteuid() == 0

# Calls in a thread of hearthd: name, number on x86-64, arguments. Each would succeed, or fail otherwise, without filter.
REFUSED = {
    "execve": (59, 0, 0, 0),
    "execveat": (322, -1, 0, 0, 0, 0),
    "ptrace": (101, 16, 1, 0, 0),
    "mount": (165, 0, 0, 0, 0, 0),
    "unshare": (272, 0x10000000),
    "process_vm_readv": (310, 1, 0, 0, 0, 0, 0),
    "socket": (41, 17, 3, 0),
    "listen": (50, 0, 1),
    "mprotect": (10, 0, 0, 4),
    "kill": (62, 1, 0),
    "setuid": (105, 0),
    "bpf": (321, 0, 0, 0),
    "io_uring_setup": (425, 1, 0),
    "clone": (56, 17, 0, 0, 0, 0),
    "userfaultfd": (323, 0),
    "init_module": (175, 0, 0, 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "keyctl": (250, 0, 0, 0),
}

def status(pid, tid=None):
    """Fields of /proc/PID/status."""
    path = "/proc/%d/status" % pid if tid is None else "/proc/%d/task/%d/status" % (pid, tid)
    return dict(re.findall(r"^(\w+):[ \t]*(.*?)[ \t]*$", pathlib.Path(path).read_text(), re.M))


def tasks(pid):
    return [int(name) for name in os.listdir("/proc/%d/task" % pid)]


def push_and_ask(server):
    server.push(Profile(TYPES).add(["main"], [1, 5]).encode(), {"__name__": "process_cpu", "service_name": "s"})
    return server.flamegraph(CPU, "{}", now_ms() - 3_600_000, now_ms() + 1000).total


def inject_calls(pid, calls):
    """{name: result} of system calls that a thread of the network makes."""
    with injected_calls.Traced(pid, injected_calls.find_thread(pid, ["acceptor", "ingest-0", "ingest", "query"])) as thread:
        return {name: thread.call(*call) for name, call in calls.items()}


class Filter(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_every_thread_is_filtered_and_can_gain_nothing(self):
        push_and_ask(self.server)
        self.assertGreater(len(tasks(self.server.process.pid)), 10)
        for tid in tasks(self.server.process.pid):
            found = status(self.server.process.pid, tid)
            self.assertEqual((found["Seccomp"], found["NoNewPrivs"]), ("2", "1"), found["Name"])
            for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
                self.assertEqual(int(found[name], 16), 0, (found["Name"], name))

    def test_postgresql_and_its_starter_are_not_filtered(self):
        postmaster = self.server.postmaster_pid()
        starter = int(status(postmaster)["PPid"])
        self.assertEqual(status(starter)["Name"], "hearth-starter")
        self.assertEqual(int(status(starter)["PPid"]), self.server.process.pid)
        self.assertEqual((status(postmaster)["Seccomp"], status(starter)["Seccomp"]), ("0", "0"))
        # The starter has none of hearthd's sockets and files.
        if IS_ROOT:
            links = {os.readlink(entry.path) for entry in os.scandir("/proc/%d/fd" % starter)}
            self.assertEqual(len([link for link in links if link.startswith("socket:")]), 1, links)

    @unless_sanitized("system calls are not filtered")
    @unittest.skipUnless(IS_ROOT and os.uname().machine == "x86_64", "needs root, x86-64")
    def test_a_thread_of_the_network_cannot_run_trace_mount_listen_or_open_raw_sockets(self):
        self.server.may_be_refused = True
        found = inject_calls(self.server.process.pid, REFUSED)
        self.assertEqual(found, {name: -errno.EPERM for name in REFUSED})
        for name in REFUSED:
            eventually(lambda: " call=%s " % name in self.server.log(), what="a log line about " + name)
        refused = prometheus.value(self.server.metrics(), "hearth_sandbox_refused_calls_total")
        self.assertGreaterEqual(refused, len(REFUSED))
        self.assertEqual(push_and_ask(self.server) % 5, 0)

    @unless_sanitized("the search for leaks traces hearthd")
    def test_hearthd_cannot_be_traced_by_its_own_user(self):
        if not IS_ROOT:
            self.skipTest("needs root to look from outside")
        # Files of /proc/PID belong to root, unless the process is dumpable.
        self.assertEqual(os.stat("/proc/%d/environ" % self.server.process.pid).st_uid, 0)


class Modes(unittest.TestCase):
    def test_off_installs_no_filter_and_log_lets_everything_run(self):
        server = Server("--sandbox", "off")
        self.assertEqual(status(server.process.pid)["Seccomp"], "0")
        server.stop()
        server = Server("--sandbox", "log")
        self.assertEqual(status(server.process.pid)["Seccomp"], "2")
        self.assertEqual(push_and_ask(server), 5)
        server.stop()

    def test_an_unknown_mode_is_refused(self):
        done = subprocess.run([HEARTHD, "--sandbox", "maybe"], capture_output=True, text=True, env=server_environment())
        self.assertEqual((done.returncode, done.stderr), (2, "hearthd: sandbox must be on, off or log\n"))

    def test_planted_symbolic_links_are_not_followed(self):
        server = Server()
        server.stop()
        data, victim = pathlib.Path(server.directory, "data"), pathlib.Path(server.directory, "victim")
        victim.write_text("untouched")
        victim.chmod(0o666)
        for name in ("postgres/hearth.conf", "postgres.log", "lock"):
            (data / name).unlink()
            (data / name).symlink_to(victim)
            done = subprocess.run(
                [HEARTHD, "--listen", "127.0.0.1:0", "--data-dir", str(data)], capture_output=True, text=True, timeout=60,
                env=server_environment(),
            )
            self.assertEqual(done.returncode, 1, name)
            self.assertIn("Too many levels of symbolic links", done.stderr)
            self.assertEqual(victim.read_text(), "untouched")
            (data / name).unlink()

    def test_the_option_dumpable_lets_the_user_read_the_process(self):
        server = Server("--dumpable")
        self.addCleanup(server.stop)
        pid = server.process.pid
        self.assertEqual(os.stat("/proc/%d/environ" % pid).st_uid, int(status(pid)["Uid"].split()[0]))

    def test_without_its_starter_hearthd_names_the_remedy(self):
        server = Server()
        self.addCleanup(server.kill)
        postmaster = server.postmaster_pid()
        os.kill(int(status(postmaster)["PPid"]), signal.SIGKILL)
        eventually(lambda: "the process that starts PostgreSQL has ended; start hearthd again" in server.log())
        eventually(lambda: server.http("GET", "/ready")[0] == 503)
        self.assertEqual(server.terminate(), 0)


@unittest.skipUnless(IS_ROOT, "needs root")
class User(unittest.TestCase):
    def uids(self, pid):
        return set(status(pid)["Uid"].split())

    def test_root_is_given_up_for_the_user_of_the_cluster(self):
        server = Server()
        owner = os.stat(os.path.join(server.directory, "data/postgres")).st_uid
        self.assertNotEqual(owner, 0)
        for pid in (server.process.pid, server.postmaster_pid(), int(status(server.postmaster_pid())["PPid"])):
            for tid in tasks(pid):
                found = status(pid, tid)
                self.assertEqual(set(found["Uid"].split()), {str(owner)})
                self.assertEqual((found["Groups"], int(found["CapBnd"], 16)), ("", 0))
        server.stop()
        # A second start finds everything as it needs it.
        server.start()
        self.assertEqual(push_and_ask(server), 5)
        server.stop()

    def test_the_user_can_be_chosen(self):
        server = Server("--user", "nobody", template=False)  # templates of clusters belong to postgres
        self.assertEqual(self.uids(server.process.pid), self.uids(server.postmaster_pid()))
        self.assertNotIn("0", self.uids(server.process.pid))
        self.assertEqual(push_and_ask(server), 5)
        server.stop()
        # By default the cluster's owner is taken, and another user is refused.
        server.options = []
        server.start()
        self.assertEqual(push_and_ask(server), 10)
        server.stop()
        done = subprocess.run(
            [HEARTHD, "--listen", "127.0.0.1:0", "--data-dir", os.path.join(server.directory, "data"), "--user", "postgres"],
            capture_output=True, text=True, env=server_environment(),
        )
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, 'belongs to user .*nobody.*, not to .*postgres.*; set --user nobody')

    def test_root_can_be_kept_and_left_later(self):
        server = Server("--user", "root")
        self.assertEqual(self.uids(server.process.pid), {"0"})
        self.assertNotIn("0", self.uids(server.postmaster_pid()))
        self.assertIn("hearthd stays root", server.log())
        self.assertEqual(push_and_ask(server), 5)
        server.stop()
        server.options = []
        server.start()
        self.assertNotIn("0", self.uids(server.process.pid))
        self.assertEqual(push_and_ask(server), 10)
        server.stop()

    def test_a_data_directory_of_an_older_version_works(self):
        server = Server()
        server.stop()
        data = pathlib.Path(server.directory, "data")
        for name in ("lock", "postgres.log"):
            os.chown(data / name, 0, 0)
        server.start()
        self.assertEqual(push_and_ask(server), 5)
        server.stop()

    def test_ports_of_root_and_files_of_root_are_opened_before(self):
        port = next(port for port in range(700, 1023) if not self.is_used(port))
        directory = temporary_directory()
        scrape = pathlib.Path(directory, "scrape.yml")
        token = pathlib.Path(directory, "token")
        scrape.write_text(
            "scrape_configs:\n  - job_name: j\n    bearer_token_file: %s\n"
            "    static_configs:\n      - targets: ['127.0.0.1:1']\n" % token
        )
        token.write_text("s3cret\n")
        for path in (scrape, token):
            path.chmod(0o600)
        server = Server(
            "--listen", "127.0.0.1:%d" % port, "--scrape-config", str(scrape), "--agent-token-file", str(token)
        )
        self.addCleanup(server.stop)
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            self.assertNotIn("0", self.uids(server.process.pid))
        # A reload keeps the secrets, which this user cannot read.
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "configuration reloaded" in server.log())
        self.assertRegex(server.log(), 'needs_restart=(""|\n)')

    @staticmethod
    def is_used(port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def test_a_user_that_is_not_there_is_refused(self):
        done = subprocess.run([HEARTHD, "--user", "no-such"], capture_output=True, text=True, env=server_environment())
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no user", done.stderr)

    def test_another_user_than_root_stays_itself(self):
        directory = temporary_directory()
        shutil.chown(directory, "nobody")
        command = [*as_user("nobody"), HEARTHD, "--listen", "127.0.0.1:0", "--data-dir", os.path.join(directory, "data")]
        log = open(os.path.join(directory, "log"), "w+")
        self.addCleanup(log.close)
        process = subprocess.Popen(command, stderr=log, env=server_environment(), cwd="/")
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        eventually(lambda: "database is ready" in pathlib.Path(log.name).read_text(), what="a ready database")
        self.assertNotIn("root is given up", pathlib.Path(log.name).read_text())
        found = status(process.pid)
        self.assertEqual((found["Seccomp"], int(found["CapPrm"], 16)), ("2", 0))
        refused = subprocess.run(
            command + ["--user", "postgres"], capture_output=True, text=True, env=server_environment(), cwd="/"
        )
        self.assertEqual(refused.returncode, 2)
        self.assertIn("only root can become user", refused.stderr)


if __name__ == "__main__":
    unittest.main()
