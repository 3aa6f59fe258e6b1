"""A streaming replica of a Cluster, on unix sockets like it."""

from server import Cluster, eventually, sql


class Standby(Cluster):
    """Made by pg_basebackup from a running primary; follows it until stopped."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()
        eventually(lambda: sql(self.url(), "SELECT pg_is_in_recovery()") == [["t"]], 60)

    def make(self, initdb):
        self._run(
            self.program("pg_basebackup"), "-D", self.data, "-d", self.primary.url(), "-R", "-X", "stream",
            "--checkpoint=fast", "--no-sync",
        )
