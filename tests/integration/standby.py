"""A streaming replica of a Cluster, on unix sockets like it."""

import os
import shutil

from server import Cluster, eventually, sql


class Standby(Cluster):
    """Made by pg_basebackup from a running primary; follows it until stopped."""

    def __init__(self, primary):
        super().__init__(start=False)
        shutil.rmtree(self.data)
        self._run(
            "pg_basebackup", "-D", self.data, "-d", primary.url(), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"
        )
        os.chmod(self.data, 0o700)
        self.start()
        eventually(lambda: sql(self.url(), "SELECT pg_is_in_recovery()") == [["t"]], 60)
