"""How hearthd starts and ends: one for each data directory, what is left of one that was killed, and signals."""

import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import threading
import unittest

from pprof import Profile
from prometheus import value
from server import HEARTHD, RpcError, Server, eventually, now_ms, server_environment, temporary_directory

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]


def files_of(directory):
    """{path: (inode, time of change)} of what a start could touch."""
    kept = [os.path.join(directory, name) for name in ("", "postgres.log", "postgres/hearth.conf", "postgres/postmaster.pid", "run")]
    return {path: (os.stat(path).st_ino, os.stat(path).st_mtime_ns) for path in kept}


class OneForEachDataDirectory(unittest.TestCase):
    def test_a_second_hearthd_is_refused_with_the_number_of_the_first_and_touches_nothing(self):
        server = Server()
        data = os.path.join(server.directory, "data")
        before = files_of(data)
        for form in (data, os.path.join(data, "..", "data")):
            with self.subTest(form):
                done = subprocess.run(
                    [HEARTHD, "--listen", "127.0.0.1:0", "--data-dir", form],
                    capture_output=True, text=True, timeout=60, env=server_environment(server.env),
                )
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("in use by another hearthd, process %d;" % server.process.pid, done.stderr)
                self.assertIn("--data-dir", done.stderr)
                self.assertNotIn("listening", done.stderr)
        self.assertEqual(files_of(data), before)
        self.assertEqual(server.http("GET", "/ready")[0], 200)
        server.stop()

    def test_a_port_in_use_is_named_and_leaves_no_directory(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = "127.0.0.1:%d" % other.getsockname()[1]
            data = os.path.join(temporary_directory(), "new")
            done = subprocess.run(
                [HEARTHD, "--listen", address, "--data-dir", data], capture_output=True, text=True, timeout=60, env=server_environment()
            )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('cannot listen on \\"%s\\": Address already in use' % address, done.stderr)
        self.assertFalse(os.path.exists(data))

    def test_the_directory_is_free_again_however_the_first_one_ended(self):
        server = Server()
        for end in (server.stop, server.kill9):
            with self.subTest(end.__name__):
                server.push(Profile(TYPES).add(["main"], [1, 1]).encode(), {"__name__": "process_cpu", "service_name": end.__name__})
                end()
                server.start()
        self.assertEqual(server.sql("SELECT count(*) FROM hearth_data.service"), [["2"]])
        server.stop()

    def test_a_postgresql_that_outlives_its_hearthd_is_waited_for(self):
        server = Server()
        postmaster = server.postmaster_pid()
        os.kill(postmaster, signal.SIGSTOP)  # it gets the kernel's SIGINT when it continues
        try:
            server.kill9()
            server.start(wait=False)
            eventually(lambda: "another PostgreSQL still runs on the cluster" in server.log(), 20, what="the warning")
            self.assertRegex(server.log(), r"level=warn component=postgres msg=\"another[^\n]* pid=%d " % postmaster)
        finally:
            os.kill(postmaster, signal.SIGCONT)
        server.wait_ready()
        self.assertNotEqual(server.postmaster_pid(), postmaster)
        self.assertNotIn("the embedded PostgreSQL ended", server.log())
        self.assertEqual(server.log().count("another PostgreSQL"), 1)
        server.stop()

    def test_a_stale_lock_file_of_postgresql_holds_nothing_up(self):
        server = Server()
        server.stop()
        lock = pathlib.Path(server.directory, "data/postgres/postmaster.pid")
        lock.write_text("%d\n%s\n1\n5432\n\n\n\n" % (os.getpid(), lock.parent))
        server.start()
        self.assertNotIn("another PostgreSQL", server.log())
        server.stop()


class FirstLines(unittest.TestCase):
    def test_a_healthy_first_start_warns_of_nothing(self):
        server = Server()
        server.stop()
        self.assertIn('level=info component=store msg="waiting for the database to start"', server.log())
        self.assertNotRegex(server.log(), "level=(warn|error)")

    def test_a_database_that_is_not_there_is_a_warning_at_once(self):
        server = Server(database_url="host=%s user=hearth" % temporary_directory(), wait=False)
        eventually(lambda: "level=warn component=store msg=\"not ready\" reason=\"waiting for" in server.log(), what="the warning")
        server.stop()


class Terminal:
    """A hearthd that has a terminal of its own, as in a shell; its log is a file."""

    def __init__(self, *before):
        self.directory = temporary_directory()
        self.log_path = os.path.join(self.directory, "log")
        self.data = os.path.join(self.directory, "data")
        self.master, terminal = pty.openpty()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["setsid", "--ctty", *before, HEARTHD, "--listen", "127.0.0.1:0", "--data-dir", self.data],
                stdin=terminal, stdout=log, stderr=log, env=server_environment(),
            )
        os.close(terminal)
        eventually(lambda: "database is ready" in self.log(), what="readiness")

    def log(self):
        with open(self.log_path) as file:
            return file.read()

    def close(self):
        """As the window of a terminal closes, or a connection by ssh breaks."""
        os.close(self.master)

    def ended_in_order(self):
        code = self.process.wait(60)
        return code == 0 and "msg=stopped" in self.log() and not os.path.exists(self.data + "/postgres/postmaster.pid")


class Hangup(unittest.TestCase):
    def test_closing_the_terminal_stops_the_server_in_order(self):
        there = Terminal()
        self.addCleanup(there.process.kill)
        there.close()
        self.assertTrue(there.ended_in_order(), there.log())
        self.assertIn("SIGHUP: the terminal was closed", there.log())

    def test_a_hangup_signal_in_an_open_terminal_does_not_stop_it(self):
        there = Terminal()
        self.addCleanup(there.process.kill)
        there.process.send_signal(signal.SIGHUP)
        eventually(lambda: "configuration reloaded" in there.log(), what="the reload")
        there.close()
        self.assertTrue(there.ended_in_order(), there.log())

    def test_under_nohup_it_outlives_its_terminal(self):
        there = Terminal("nohup")
        self.addCleanup(there.process.kill)
        there.close()
        there.process.send_signal(signal.SIGHUP)
        there.process.send_signal(signal.SIGTERM)
        self.assertTrue(there.ended_in_order(), there.log())
        self.assertIn("stopping signal=SIGTERM", there.log())
        self.assertNotIn("reloaded", there.log())

    def test_a_reload_applies_options_and_names_those_that_need_a_restart(self):
        directory = temporary_directory()
        path = pathlib.Path(directory, "hearth.conf")
        path.write_text("log-level = info\nmax-samples = 1000\n")
        server = Server("--config", str(path), directory=directory)
        body = server.http("GET", "/api/v1/status/config")[2].decode()
        labels = re.search(r"service-labels: (.*)", body).group(1)

        # Before the signal, the doctor sees what the file says, and what is in effect.
        path.write_text("log-level = debug\nmax-samples = 2000\nservice-labels = app\n")
        checks = {c["name"]: c for c in server.connect("hearth.v1.AdminService/Doctor", {})["checks"]}
        self.assertEqual(checks["configuration"]["verdict"], "VERDICT_OK")
        self.assertEqual(checks["options that are not in effect"]["verdict"], "VERDICT_ADVICE")
        self.assertEqual(
            checks["options that are not in effect"]["found"],
            "SIGHUP applies max-samples: 2000 (%s:2) instead of 1000, log-level: debug (%s:1) instead of info; "
            "a restart applies service-labels: [app] (%s:3) instead of %s" % (path, path, path, labels),
        )
        server.process.send_signal(signal.SIGHUP)
        found = eventually(lambda: re.search("msg=\"configuration reloaded\".*", server.log()), what="the reload").group()
        self.assertIn('log_level=debug changed="max-samples, log-level" needs_restart=service-labels', found)
        server.http("GET", "/ready")
        server.connect("querier.v1.QuerierService/LabelNames", {"start": 1, "end": 2})
        eventually(lambda: "level=debug" in server.log(), what="a line at the new level")

        self.assertEqual(value(server.metrics(), "hearth_config_options_awaiting_restart"), 1)
        checks = {c["name"]: c for c in server.connect("hearth.v1.AdminService/Doctor", {})["checks"]}
        self.assertEqual(checks["configuration"]["verdict"], "VERDICT_ADVICE")
        self.assertIn("needs a restart for: service-labels", checks["configuration"]["found"])
        changed = checks["options that are not the defaults"]["found"]
        self.assertIn("log-level: debug (%s:1)" % path, changed)
        self.assertIn("max-samples: 2000 (%s:2)" % path, changed)
        self.assertNotIn("max-request-bytes", changed)
        found = checks["options that are not in effect"]["found"]
        self.assertEqual(found, "a restart applies service-labels: [app] (%s:3) instead of %s" % (path, labels))
        status, _, body = server.http("GET", "/ready")
        self.assertEqual((status, body), (200, b"ready, degraded: the configuration has changed, and hearthd needs a restart for: service-labels"))

        # A file that cannot be read changes nothing, and the server goes on.
        path.write_text("log-level = warn\nmax-sampels = 1\n")
        server.process.send_signal(signal.SIGHUP)
        found = eventually(lambda: re.search("configuration not reloaded.*", server.log()), what="the refusal").group()
        self.assertIn('unknown key \\"max-sampels\\"', found)
        status, _, body = server.http("GET", "/ready")
        self.assertEqual(status, 200)
        self.assertIn(b"the configuration was not reloaded, the old one stays in effect: ", body)
        self.assertEqual(value(server.metrics(), "hearth_config_last_reload_successful"), 0)

        checks = {c["name"]: c for c in server.connect("hearth.v1.AdminService/Doctor", {})["checks"]}
        self.assertIn("have mistakes: %s:2: unknown key" % path, checks["options that are not in effect"]["found"])

        # The original file again: nothing waits any more.
        path.write_text("log-level = info\nmax-samples = 1000\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: server.http("GET", "/ready")[2] == b"ready", what="a configuration as at the start")
        checks = {c["name"]: c for c in server.connect("hearth.v1.AdminService/Doctor", {})["checks"]}
        self.assertEqual((checks["configuration"]["verdict"], checks["configuration"]["found"]), ("VERDICT_OK", "in effect"))
        self.assertEqual(checks["options that are not in effect"]["found"], "none")
        self.assertEqual(value(server.metrics(), "hearth_config_last_reload_successful"), 1)
        self.assertEqual(value(server.metrics(), "hearth_config_options_awaiting_restart"), 0)
        server.stop()

    def test_a_reload_applies_limits_and_retention_while_profiles_arrive(self):
        directory = temporary_directory()
        path = pathlib.Path(directory, "hearthd.yaml")
        path.write_text("ingest: {max-samples: 2}\nbackground: {retain-raw: 7d}\n")
        server = Server("--config", str(path), directory=directory)
        three = Profile([("cpu", "nanoseconds")]).add(["a"], [1]).add(["b"], [2]).add(["c"], [3]).encode()
        labels = {"__name__": "process_cpu", "service_name": "s"}
        with self.assertRaises(RpcError) as refused:
            server.push(three, labels)
        self.assertIn("max-samples", str(refused.exception))

        # Pushes and queries run while the configuration changes back and forth.
        stop, failures = threading.Event(), []

        def use():
            small = Profile([("cpu", "nanoseconds")]).add(["a"], [1]).encode()
            while not stop.is_set():
                try:
                    server.push(small, labels)
                    server.connect("querier.v1.QuerierService/LabelNames", {"start": 1, "end": now_ms()})
                except Exception as error:  # noqa: BLE001
                    failures.append(error)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for k in range(20):
            path.write_text("ingest: {max-samples: %d}\nbackground: {retain-raw: %dd}\n" % (5 - k % 2, 8 + k % 2))
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda k=k: server.log().count("configuration reloaded") == k + 1, what="the reload")
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

        server.push(three, labels)
        body = server.http("GET", "/api/v1/status/config")[2].decode()
        self.assertRegex(body, "max-samples(:| =) 4")
        self.assertRegex(body, "retain-raw(:| =) 9d")
        server.stop()

    def test_a_reload_reads_the_targets_of_scraping_again(self):
        directory = temporary_directory()
        path = pathlib.Path(directory, "targets.yaml")
        path.write_text("scrape_configs: []\n")
        server = Server("--scrape-config", str(path), directory=directory)
        job = "scrape_configs: [{job_name: itself, static_configs: [{targets: ['127.0.0.1:%d']}]}]\n" % server.port
        path.write_text("scrape_config: []\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: 'scrape_config\\" is unknown here' in server.log(), what="the refusal")
        self.assertIn("was not reloaded", server.http("GET", "/ready")[2].decode())
        path.write_text(job)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "hearth_scrapes_total" in str(server.metrics()) and value(server.metrics(), "hearth_scrape_targets") >= 1, what="a target")
        server.stop()
