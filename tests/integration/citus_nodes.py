"""A coordinator and two workers of Citus on loopback; HEARTH_TEST_CITUS names the folder of their binaries (bin of a PostgreSQL)."""

import os
import random
import signal
import socket
import subprocess
import sys

from server import HEARTHD, ROOT, Cluster, Server, eventually, server_environment, sql
from standby import base_backup, wait_until_it_follows

sys.path.insert(0, str(ROOT / "tests/lint"))
import placement  # noqa: E402

CITUS = os.environ.get("HEARTH_TEST_CITUS")
WHY_NOT = "HEARTH_TEST_CITUS does not name the binaries of a PostgreSQL with Citus"
DATA = [name for name, placed in placement.placement(ROOT).items() if placed == "DATA"]


def scale_out(url, *option):
    """Exit code, output and errors of `hearthd scale-out`."""
    done = subprocess.run(
        [HEARTHD, "scale-out", *option, "--database-url", url], capture_output=True, text=True, env=server_environment()
    )
    return done.returncode, done.stdout, done.stderr


def free_port():
    """Below the ports that the kernel gives to clients: one of these may take the port of a node while that is down."""
    while True:
        port = random.randrange(15000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Node(Cluster):
    """One PostgreSQL with Citus. Nodes talk over loopback, because Citus knows nodes by host and port."""

    def __init__(self):
        self.port = free_port()
        super().__init__(template=False)
        sql(self.url(), "CREATE EXTENSION citus")

    @staticmethod
    def program(name):
        return os.path.join(CITUS, name)

    def start(self):
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.directory,
            "shared_buffers": "64MB", "shared_preload_libraries": "citus", "wal_level": "logical",
            "max_prepared_transactions": 200, "citus.recover_2pc_interval": "1s", "fsync": "off",
            "citus.multi_shard_modify_mode": "sequential", "citus.max_cached_conns_per_worker": 8,
            "citus.shard_count": 8, "citus.node_conninfo": "sslmode=disable", "default_toast_compression": "lz4", "citus.enable_statistics_collection": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", "%s=%s" % (name, value))]
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [*self.as_user, self.program("postgres"), "-D", self.data, *options],
                stdout=log, stderr=log, cwd="/", start_new_session=True, env={**os.environ, "HOME": self.directory},
            )
        eventually(self._answers, 60, what="PostgreSQL with Citus")

    def processes(self):
        """The postmaster and its children."""
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        return [self.process.pid, *map(int, found.stdout.split())]

    def signal(self, number):
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def stop(self):
        """Citus' maintenance daemon may not heed a shutdown while it waits for a node that is down."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill9()

    def kill9(self):
        """As when the machine dies. While a backend of the old postmaster lives, a new one does not start."""
        pids = self.processes()
        self.signal(signal.SIGKILL)
        self.process.wait()
        eventually(lambda: not any(os.path.exists("/proc/%d/exe" % pid) for pid in pids), 30, what="the death of all processes")

    def _answers(self):
        assert self.process.poll() is None, "PostgreSQL ended with %s" % self.process.returncode
        try:
            return sql(self.url(), "SELECT 1")
        except AssertionError:
            return None

    def url(self, database="postgres"):
        return "host=127.0.0.1 port=%d user=hearth dbname=%s" % (self.port, database)


class Standby(Node):
    """A streaming replica of a node."""

    def __init__(self, primary):
        self.primary = primary
        self.port = free_port()
        Cluster.__init__(self, template=False)
        wait_until_it_follows(self)

    def make(self, initdb):
        base_backup(self, self.primary)


class Nodes:
    """The coordinator and its workers."""

    def __init__(self, n_workers=2):
        self.coordinator = Node()
        self.workers = [Node() for _ in range(n_workers)]
        self.sql("SELECT citus_set_coordinator_host('127.0.0.1', %d)" % self.coordinator.port)
        for worker in self.workers:
            self._add(worker)

    def _add(self, worker):
        self.sql("SELECT citus_add_node('127.0.0.1', %d)" % worker.port)

    def add_worker(self):
        self.workers.append(Node())
        self._add(self.workers[-1])

    def sql(self, text):
        return sql(self.coordinator.url(), text)

    def url(self):
        return self.coordinator.url()

    def distribute(self):
        """Creates the tables, and distributes them."""
        Server(database_url=self.url()).stop()
        # PostgreSQL may need a moment to end the connections of a server that has ended.
        eventually(lambda: scale_out(self.url())[0] == 0, 60, what="distributed tables")

    def move_group(self, k):
        """One group of shards moves to another worker: for each k another group, then again the first."""
        placed = self.sql("SELECT shardid, nodeport FROM citus_shards WHERE table_name = 'hearth_data.roll_state'::regclass ORDER BY 1")
        shard, port = placed[k % len(placed)]
        others = [worker.port for worker in self.workers if worker.port != int(port)]
        self.sql("SELECT citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %d)" % (shard, port, others[k % len(others)]))

    def stop(self):
        for node in [self.coordinator, *self.workers]:
            node.stop()
