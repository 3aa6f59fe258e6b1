"""Commits of a server whose processors are busy decoding: they wait for more profiles, but not for clients that wait for them."""

import concurrent.futures
import os
import random
import unittest

from pprof import Profile
from server import Server, now_ms

CLIENTS = 8 * max(4, os.cpu_count())  # a multiple of what keeps the processors busy
PUSHES = 3  # of each, one after another
MAX_SECONDS = 55  # for one push; far below the wait that no push may meet


def large_profile():
    """One that takes milliseconds to decode, so that pushes pile up."""
    draw = random.Random(4)
    profile = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * 1_000_000)
    for i in range(4000):
        profile.add(["main", "branch%d" % (i % 7)] + ["f%d" % draw.randrange(900) for _ in range(20)], [10 + i])
    return profile.encode()


class BusyCommits(unittest.TestCase):
    def push_at_once(self, *options):
        """Of CLIENTS in a closed loop: how many commits waited for those that followed."""
        server = Server("--commit-linger", "0", "--commit-rows", "1", "--commit-alone-gap", "0", *options)
        self.addCleanup(server.stop)
        body, labels = large_profile(), {"service_name": "api", "__name__": "process_cpu"}
        server.push(body, labels)
        def client(_):
            for _ in range(PUSHES):
                server.push(body, labels)

        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
            for done in [clients.submit(client, i) for i in range(CLIENTS)]:
                done.result(MAX_SECONDS * PUSHES)
        self.assertEqual(server.sql("SELECT count(*) FROM hearth_data.profile"), [[str(1 + CLIENTS * PUSHES)]])
        return server.metrics()[("hearth_commit_batches_gathered_total", ())]

    def test_while_pushes_wait_to_be_decoded_commits_wait_for_them_and_no_longer(self):
        # Waiting for the end of the time, or for as many rows, would fail each push by its deadline.
        self.assertGreater(self.push_at_once("--commit-busy-linger", "10m", "--commit-busy-rows", "100000"), 0)

    def test_without_commit_busy_linger_no_commit_waits_for_them(self):
        self.assertEqual(self.push_at_once("--commit-busy-linger", "0"), 0)


if __name__ == "__main__":
    unittest.main()
