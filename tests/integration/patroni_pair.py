"""Two PostgreSQL that Patroni runs, with one etcd, on loopback. Patroni alone decides which of them is the primary."""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.request

from server import Cluster, as_user, eventually, sql, temporary_directory

# Seconds. Patroni promotes once the key of a dead primary has expired, which takes at most TTL.
TTL, LOOP_WAIT, RETRY_TIMEOUT = 20, 2, 5


def is_installed():
    return bool(shutil.which("patroni") and shutil.which("etcd"))


def free_ports(n):
    """Ports that were free a moment ago: Patroni has to know them before it starts."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as found:
            return [int(child) for child in found.read().split()]
    except FileNotFoundError:
        return []


class Etcd:
    def __init__(self):
        self.directory = temporary_directory()
        self.port, peer = free_ports(2)
        client, peer = ("http://127.0.0.1:%d" % port for port in (self.port, peer))
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [
                    "etcd", "--name=one", "--data-dir=" + os.path.join(self.directory, "data"),
                    "--listen-client-urls=" + client, "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer,
                    "--initial-advertise-peer-urls=" + peer, "--initial-cluster=one=" + peer,
                ],
                stdout=log, stderr=log,
            )
        atexit.register(self.stop)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Node:
    """One machine: a Patroni and its PostgreSQL. The first one that starts makes the cluster, the second one copies it."""

    def __init__(self, name, etcd, dcs):
        self.directory = temporary_directory()
        self.data = os.path.join(self.directory, "pg")
        self.as_user = as_user("postgres") if os.geteuid() == 0 else []
        if self.as_user:
            shutil.chown(self.directory, "postgres", "postgres")
        self.port, self.rest = free_ports(2)
        # YAML includes JSON.
        self.config = os.path.join(self.directory, "patroni.yml")
        with open(self.config, "w") as out:
            json.dump(self.settings(name, etcd, dcs), out)
        self.process = None
        atexit.register(self.kill9)
        self.start()

    def settings(self, name, etcd, dcs):
        return {
            "scope": "hearth", "name": name,
            "etcd3": {"host": "127.0.0.1:%d" % etcd.port},
            "restapi": {"listen": "127.0.0.1:%d" % self.rest, "connect_address": "127.0.0.1:%d" % self.rest},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL, "loop_wait": LOOP_WAIT, "retry_timeout": RETRY_TIMEOUT, **dcs,
                    "postgresql": {"use_pg_rewind": True, "parameters": {"shared_buffers": "64MB", "wal_log_hints": True}},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}],
            },
            "postgresql": {
                "listen": "127.0.0.1:%d" % self.port, "connect_address": "127.0.0.1:%d" % self.port,
                "data_dir": self.data, "bin_dir": os.path.dirname(Cluster.program("postgres")),
                "pgpass": os.path.join(self.directory, "pgpass"),
                "parameters": {"unix_socket_directories": self.directory},
                "authentication": {"superuser": {"username": "hearth"}, "replication": {"username": "replicator"}},
                "pg_hba": ["local all all trust", "host all,replication all 127.0.0.1/32 trust"],
            },
        }

    def start(self):
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen([*self.as_user, "patroni", self.config], stdout=log, stderr=log, cwd="/")

    def url(self):
        return "host=127.0.0.1 port=%d user=hearth dbname=postgres" % self.port

    def role(self):
        """None while it cannot be asked."""
        try:
            return {"f": "primary", "t": "standby"}[sql(self.url(), "SELECT pg_is_in_recovery()")[0][0]]
        except AssertionError:
            return None

    def is_synchronous(self):
        """Patroni itself, by its key in etcd, would promote this node. PostgreSQL says so a little earlier."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/synchronous" % self.rest, timeout=5) as answer:
                return answer.status == 200
        except OSError:  # refused, or 503
            return False

    def stop(self):
        """Patroni stops its PostgreSQL; a primary would give up its key."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def kill9(self):
        """The machine dies: Patroni first, so that it starts nothing again, then PostgreSQL with all its processes."""
        self.process.kill()
        self.process.wait()
        try:
            with open(os.path.join(self.data, "postmaster.pid")) as lock:
                postmaster = int(lock.readline())
        except FileNotFoundError:
            return
        for pid in [postmaster] + children(postmaster):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def wait_for_role(node, role):
    eventually(lambda: node.role() == role, 60, 0.1, what="a %s of Patroni" % role)


class Pair:
    """etcd and two nodes; `dcs`: settings of Patroni for the whole cluster."""

    def __init__(self, **dcs):
        self.etcd = Etcd()
        # Not "first": a word of the grammar of synchronous_standby_names, which Patroni 3.0 does not quote.
        first = Node("db1", self.etcd, dcs)
        wait_for_role(first, "primary")
        self.nodes = [first, Node("db2", self.etcd, dcs)]

    def stop(self):
        for node in self.nodes:
            node.kill9()
        self.etcd.stop()

    def hearth_url(self):
        return "host=127.0.0.1,127.0.0.1 port=%d,%d user=hearth dbname=postgres" % tuple(n.port for n in self.nodes)
