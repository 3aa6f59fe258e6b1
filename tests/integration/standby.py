"""A streaming replica of a Cluster, on unix sockets like it."""

import contextlib
import os
import shutil
import signal

from server import Cluster, eventually, sql


class Standby(Cluster):
    """Made by pg_basebackup from a running primary; follows it until stopped."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()
        wait_until_it_follows(self)

    def make(self, initdb):
        base_backup(self, self.primary)


def base_backup(cluster, primary):
    cluster._run(
        cluster.program("pg_basebackup"), "-D", cluster.data, "-d", primary.url(), "-R", "-X", "stream",
        "--checkpoint=fast", "--no-sync",
    )


def wait_until_it_follows(cluster):
    eventually(lambda: sql(cluster.url(), "SELECT pg_is_in_recovery()") == [["t"]], 60)


def follow(cluster, primary):
    """Make a standby of `primary` out of a cluster that is stopped; its files are removed."""
    shutil.rmtree(cluster.data)
    os.mkdir(cluster.data, 0o700)
    if cluster.as_user:
        shutil.chown(cluster.data, "postgres", "postgres")
    base_backup(cluster, primary)
    cluster.start()
    wait_until_it_follows(cluster)


def is_stopped(pid):
    with open("/proc/%d/stat" % pid) as stat:
        return stat.read().rpartition(") ")[2].startswith("T")


def kill9(cluster):
    """The machine of the cluster dies: all its processes. While one of them lives, a new postmaster does not start."""
    postmaster = cluster.process.pid
    os.kill(postmaster, signal.SIGSTOP)
    eventually(lambda: is_stopped(postmaster), 30, what="the postmaster's stop: it starts no more processes")
    with open("/proc/%d/task/%d/children" % (postmaster, postmaster)) as found:
        children = [int(child) for child in found.read().split()]
    for pid in [postmaster] + children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    cluster.process.wait()
    eventually(lambda: not any(os.path.exists("/proc/%d/exe" % pid) for pid in children), 30, what="the end of all processes")
