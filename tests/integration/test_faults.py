"""What machines do to a server: clocks that jump by an hour, a disk that is slow or full, a database that is away.

Six clients push all the time. Afterwards each acknowledged profile is there once. With HEARTH_TEST_LONG each state holds
20 s, and the database is away for ten minutes; otherwise there are fewer states, each holds until every client has been
acknowledged again, and the database is away for ten seconds.
"""

import contextlib
import mmap
import os
import pathlib
import struct
import subprocess
import time
import unittest

import grpc

import test_crash
from questions import CPU
from server import PROFILES, Cluster, Server, eventually, note, now_ms, sanitizer, temporary_directory

HERE = pathlib.Path(__file__).resolve().parent
LONG = bool(os.environ.get("HEARTH_TEST_LONG"))
HOLD_SECONDS = 20 if LONG else 0
AWAY_SECONDS = 600 if LONG else 10
HOUR = 3600
NS = 1_000_000_000
# Hours by which the clocks of the database and of the server jump, and what a sync of the slow disk takes.
JUMPS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1)) if LONG else ((0, -1), (1, 0), (1, 1))
SYNCS_MS = (200, 2000) if LONG else (200,)
OPTIONS = ["--builder-interval", "200ms", "--rollup-grace", "0", "--commit-linger", "2ms"]
# The server compares its clock with the database's once in this time.
CLOCK_SECONDS = 30


class Faults:
    """The variables of processes whose clock and disk are changed while they run (faults.c)."""

    library = None

    def __init__(self):
        if Faults.library is None:
            Faults.library = os.path.join(temporary_directory(), "faults.so")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", Faults.library, HERE / "faults.c"], check=True)
        path = os.path.join(temporary_directory(), "faults")
        pathlib.Path(path).write_bytes(bytes(24))
        os.chmod(path, 0o644)
        with open(path, "r+b") as file:
            self.numbers = mmap.mmap(file.fileno(), 24)
        self.env = {"LD_PRELOAD": Faults.library, "FAULTS_FILE": path}
        # For a hearthd, whose sanitizer has to be loaded first.
        self.server_env = {**self.env, "LD_PRELOAD": "%s %s" % (sanitizer(), Faults.library)}

    def clock(self, seconds):
        self.numbers[0:8] = struct.pack("<q", seconds * NS)

    def slow_disk(self, ms):
        self.numbers[8:16] = struct.pack("<q", ms * 1000)

    def failing_disk(self, number):
        """Each sync fails with this error of the system; 0: none."""
        self.numbers[16:24] = struct.pack("<q", number)


class Pusher(test_crash.Pusher):
    refusals = (*test_crash.Pusher.refusals, grpc.StatusCode.RESOURCE_EXHAUSTED)
    ahead_ns = 0  # of the true time

    def now_ns(self):
        return time.time_ns() + self.ahead_ns

    def push(self, request):
        time.sleep(0.08)  # states last for seconds, of which each push costs milliseconds of processor time
        return super().push(request)


class WithLoad(unittest.TestCase):
    def begin(self, cluster, server):
        self.cluster, self.server = cluster, server
        self.addCleanup(cluster.stop)
        self.addCleanup(server.kill)
        self.start_ms = now_ms()
        self.pushers = [Pusher(k, server) for k in range(test_crash.PUSHERS)]
        for pusher in self.pushers:
            pusher.start()
        test_crash.progress(self.pushers)

    def end(self):
        """Stops the load and counts."""
        test_crash.progress(self.pushers)
        for pusher in self.pushers:
            pusher.stopping.set()
        for pusher in self.pushers:
            pusher.join(60)
            self.assertFalse(pusher.is_alive())
        start, end = self.start_ms - 2 * HOUR * 1000, now_ms() + 2 * HOUR * 1000
        counted, acknowledged, doubtful = test_crash.count_stored(self, self.server, self.pushers, start, end)
        self.assertEqual(self.server.sql("SELECT count(*) FROM " + PROFILES), [[str(len(counted))]])
        note("%d acknowledged, %d in doubt" % (len(acknowledged), len(doubtful)))
        self.server.stop()

    def query(self):
        return self.server.flamegraph(CPU, "{}", self.start_ms, now_ms() + 60_000).total

    def refused(self):
        """Until each client was refused once more."""
        before = [p.n_refused for p in self.pushers]
        eventually(lambda: all(p.n_refused > b for p, b in zip(self.pushers, before)), 90, what="a refusal for everybody")


class Clocks(WithLoad):
    def hold(self, database_hours, server_hours):
        """Both clocks jump. The clients keep the true time, unless it lies ahead of both: then they go back before."""
        if max(database_hours, server_hours) < 0:
            for pusher in self.pushers:
                pusher.ahead_ns = -HOUR * NS
            test_crash.progress(self.pushers)
        self.of_database.clock(database_hours * HOUR)
        self.of_server.clock(server_hours * HOUR)
        if max(database_hours, server_hours) >= 0:
            for pusher in self.pushers:
                pusher.ahead_ns = 0
        time.sleep(HOLD_SECONDS)
        # Until the server has compared the clocks, a profile of an hour ahead of its own is refused.
        test_crash.progress(self.pushers, 90 + CLOCK_SECONDS)

    def test_clocks_jump_by_an_hour_forwards_and_back(self):
        self.of_database, self.of_server = Faults(), Faults()
        cluster = Cluster(env=self.of_database.env)
        self.begin(cluster, Server(*OPTIONS, database_url=cluster.url(), env=self.of_server.server_env))
        for pusher in self.pushers:
            pusher.refusals = (*pusher.refusals, grpc.StatusCode.INVALID_ARGUMENT)

        for hours in JUMPS:
            self.hold(*hours)
            if hours == (0, -1):
                eventually(lambda: b"this server's clock is 1h behind" in self.server.http("GET", "/ready")[2], CLOCK_SECONDS)
            self.assertGreater(self.query(), 0)
            self.hold(0, 0)
        eventually(lambda: self.server.http("GET", "/ready")[2] == b"ready", CLOCK_SECONDS, what="clocks that agree")
        self.end()


class Disks(WithLoad):
    def test_a_slow_disk_delays_acknowledgements_and_loses_nothing(self):
        disk = Faults()
        cluster = Cluster(env=disk.env)
        self.begin(cluster, Server(*OPTIONS, database_url=cluster.url()))
        for ms in SYNCS_MS:
            disk.slow_disk(ms)
            time.sleep(HOLD_SECONDS)
            test_crash.progress(self.pushers)
            began = time.monotonic()
            test_crash.progress(self.pushers[:1])
            # Two pushes in turn, each behind a sync of the log.
            self.assertGreater(time.monotonic() - began, 2 * ms / 1000 * 0.9)
            began = time.monotonic()
            self.assertGreater(self.query(), 0)
            note("sync takes %d ms: a query took %.3f s" % (ms, time.monotonic() - began))
        disk.slow_disk(0)
        self.end()

    @unittest.skipIf(os.geteuid() != 0, "only root can mount a small file system")
    def test_a_full_disk_refuses_pushes_and_answers_queries(self):
        cluster = Cluster(start=False)
        small = os.path.join(cluster.directory, "small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", small], capture_output=True).returncode:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", small], check=True)
        moved = os.path.join(small, "pg")
        # The log of a template has holes, which need room on the disk when they are written.
        subprocess.run(["cp", "-a", "--sparse=never", cluster.data, moved], check=True)
        cluster.data = moved
        cluster.start()
        self.begin(cluster, Server(*OPTIONS, database_url=cluster.url()))

        # Something else takes all of the disk.
        ballast = os.path.join(small, "ballast")
        with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        self.refused()
        time.sleep(HOLD_SECONDS)
        self.assertGreater(self.query(), 0)
        os.remove(ballast)
        self.end()


class Away(WithLoad):
    def test_a_database_that_is_away_for_minutes_loses_nothing(self):
        cluster = Cluster()
        self.begin(cluster, Server(*OPTIONS, database_url=cluster.url()))
        cluster.stop()
        began = time.monotonic()
        self.refused()
        self.assertEqual(self.server.http("GET", "/ready")[0], 503)
        time.sleep(max(0, AWAY_SECONDS - (time.monotonic() - began)))
        self.assertIsNone(self.server.process.poll(), "hearthd ended")
        cluster.start()
        began = time.monotonic()
        test_crash.progress(self.pushers)
        note("away for %d s; all clients were acknowledged again after %.1f s" % (AWAY_SECONDS, time.monotonic() - began))
        self.end()


if __name__ == "__main__":
    unittest.main()
