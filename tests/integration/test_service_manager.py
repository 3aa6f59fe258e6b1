"""hearthd as a service of systemd: readiness, status, watchdog and passed sockets, by the protocol of its manual pages."""

import ctypes
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from server import HEARTHD

PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"  # hearthd listens, and waits for it


class Manager:
    """What systemd does for a unit: it passes a listening socket as descriptor 3 and receives notifications."""

    def __init__(self, listen=None, watchdog_us=None):
        self.directory = tempfile.mkdtemp()
        os.chmod(self.directory, 0o755)
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified.bind(os.path.join(self.directory, "notify"))
        os.chmod(self.notified.getsockname(), 0o777)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.listen = listen or self.address
        self.watchdog_us = watchdog_us
        self.start()

    def start(self):
        environment = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": self.notified.getsockname(), "LISTEN_FDS": "1"}
        if self.watchdog_us:
            environment["WATCHDOG_USEC"] = str(self.watchdog_us)
        fd = self.socket.fileno()
        self.process = subprocess.Popen(
            ["sh", "-c", 'export LISTEN_PID=$$; exec 3<&%d; exec "$0" "$@"' % fd, HEARTHD, "--listen", self.listen,
             "--database-url", NOWHERE],
            env=environment, pass_fds=[fd], stderr=subprocess.PIPE, text=True)

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=60)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self.notified.close()
        self.socket.close()
        shutil.rmtree(self.directory)

    def states(self, seconds, until=None):
        """Notifications of that time, or up to one that begins with `until`."""
        states = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.notified.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                states.append(self.notified.recv(4096).decode())
            except TimeoutError:
                break
            if until and states[-1].startswith(until):
                return states
        assert until is None, "no %s among %r" % (until, states)
        return states


class ServiceManager(unittest.TestCase):
    def manager(self, **options):
        manager = Manager(**options)
        self.addCleanup(manager.close)
        return manager

    def test_the_service_manager_is_notified_of_readiness_database_loss_and_stop(self):
        manager = self.manager()
        manager.states(60, until="READY=1")
        status = manager.states(60, until="STATUS=")[-1]
        self.assertIn("database", status)
        self.assertEqual(manager.stop(), 0)
        self.assertIn("STOPPING=1", manager.states(1))

    def test_a_passed_socket_survives_a_restart(self):
        manager = self.manager()
        manager.states(60, until="READY=1")
        self.assertEqual(manager.stop(), 0)
        early = socket.create_connection(manager.socket.getsockname(), timeout=60)  # while there is no server
        self.addCleanup(early.close)
        early.sendall(b"GET /ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        manager.start()
        self.assertTrue(early.recv(4096).startswith(b"HTTP/1.1 503"))

    def test_refuses_a_socket_that_no_option_names(self):
        manager = self.manager(listen="127.0.0.1:0")
        _, errors = manager.process.communicate(timeout=60)
        self.assertEqual(manager.process.returncode, 2)
        self.assertIn(manager.address, errors)

    def test_feeds_the_watchdog(self):
        manager = self.manager(watchdog_us=3_000_000)
        manager.states(60, until="READY=1")
        self.assertGreaterEqual(manager.states(6).count("WATCHDOG=1"), 3)

    def test_a_hanging_acceptor_starves_the_watchdog(self):
        manager = self.manager(watchdog_us=8_000_000)
        manager.states(60, until="WATCHDOG=1")

        # A tracer holds that thread alone.
        tasks = pathlib.Path("/proc/%d/task" % manager.process.pid)
        acceptor = next(int(task.name) for task in tasks.iterdir() if (task / "comm").read_text() == "acceptor\n")
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(PTRACE_ATTACH, acceptor, None, None) != 0:
            self.skipTest("this user may not hold a thread of hearthd: %s" % os.strerror(ctypes.get_errno()))
        libc.waitpid(acceptor, None, WALL)
        manager.states(5)  # the last ones, for progress until now
        self.assertNotIn("WATCHDOG=1", manager.states(5))

        libc.ptrace(PTRACE_DETACH, acceptor, None, None)
        manager.states(60, until="WATCHDOG=1")


if __name__ == "__main__":
    unittest.main()
