"""How hearthd starts and ends: one for each data directory, what is left of one that was killed, and signals."""

import fcntl
import os
import pathlib
import pty
import re
import signal
import subprocess
import termios
import unittest

from pprof import Profile
from server import HEARTHD, Server, eventually, server_environment, temporary_directory

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


