#!/usr/bin/python3
"""kill -9 at random, as often as wanted: kills.py [KILLS] [--in N] [--seed S] [--ledger FILE]

Pieces of N kills (50), each with a new database and two hearthd on it, under the load and with the counting of
test_background_crash.py. What is killed is drawn: a server, the server that builds, both, a backend of PostgreSQL, the
backend in which the builder has a transaction open, the postmaster. Each piece adds a line to kills.tsv, next to this
file; a piece with a wrong answer ends the run with status 1.
"""

import argparse
import collections
import os
import pathlib
import signal
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

import test_background_crash
from server import Server, eventually, now_ms

KINDS = ("server", "building_server", "both_servers", "backend", "builders_backend", "postmaster")
COLUMNS = ("date", "seed", "seconds", "kills", *KINDS, "acknowledged", "in_doubt", "lost", "doubled", "other_findings")

# The builder's transactions begin by locking this row.
BUILDING = (
    "SELECT pid FROM pg_locks WHERE relation = 'hearth_data.lease'::regclass AND mode = 'RowShareLock' AND granted"
)


class Kills(test_background_crash.BackgroundCrash):
    def __init__(self, seed, cycles):
        super().__init__()
        self.seed, self.cycles = seed, cycles
        self.n_killed = collections.Counter()
        self.n_lost = self.n_doubled = 0

    def runTest(self):
        self.crash(embedded=False)
        self.check()
        self.server.stop()
        self.cluster.stop()

    def begin(self, embedded):
        super().begin(embedded)
        self.other = Server(*test_background_crash.BUSY, database_url=self.cluster.url())

    def target(self, number):
        return (self.server, self.other)[number % 2]

    # ---- killing ----

    def kill(self, cycle):
        kind = self.random.choice(KINDS)
        getattr(self, "kill_" + kind)()
        self.n_killed[kind] += 1

    def kill_servers(self, servers):
        for server in servers:
            server.kill9()
        for server in servers:
            server.start()
        # As if the 30 s had passed in which nobody builds after the holder of the lease has died.
        self.server.sql("UPDATE hearth_data.lease SET expires_at = '-infinity'")

    def kill_server(self):
        self.kill_servers([self.random.choice([self.server, self.other])])

    def builds(self, server):
        return any(name == "hearth_builder_lease" and value for (name, _), value in server.metrics().items())

    def kill_building_server(self):
        found = eventually(lambda: [s for s in (self.server, self.other) if self.builds(s)], 60, what="a builder")
        eventually(self.building, 60, 0.005, what="a transaction of the builder")
        self.kill_servers(found[:1])

    def kill_both_servers(self):
        self.kill_servers([self.server, self.other])

    def building(self):
        try:
            return [int(row[0]) for row in self.server.sql(BUILDING)]
        except AssertionError:  # PostgreSQL starts again
            return None

    def kill_builders_backend(self):
        pids = eventually(self.building, 60, 0.005, what="a transaction of the builder")
        try:
            os.kill(pids[0], signal.SIGKILL)
        except ProcessLookupError:
            pass

    # ---- counting ----

    def check(self):
        self.assertEqual(self.other.terminate(), 0)
        eventually(self.settled, 120, what="the end of background work")
        counted, pushed = self.answers()[0], {**self.acknowledged, **self.doubtful}
        self.n_lost = sum(name not in counted for name in self.acknowledged)
        self.n_doubled = sum(value > pushed[name].cpu for name, value in counted.items() if name in pushed)
        super().check()


def run_piece(seed, cycles, ledger):
    """Runs a piece and adds its line to the ledger."""
    piece, began, finding = Kills(seed, cycles), time.monotonic(), 0
    try:
        piece.runTest()
    except Exception:
        traceback.print_exc()
        finding = 1
        for server in (piece.server, piece.other):
            server.kill()
        piece.cluster.stop()
    values = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()), "seed": seed, "seconds": round(time.monotonic() - began),
        "kills": sum(piece.n_killed.values()), **{kind: piece.n_killed[kind] for kind in KINDS},
        "acknowledged": len(getattr(piece, "acknowledged", ())), "in_doubt": len(getattr(piece, "doubtful", ())),
        "lost": piece.n_lost, "doubled": piece.n_doubled, "other_findings": finding,
    }
    new = not ledger.exists()
    with open(ledger, "a") as out:
        if new:
            out.write("\t".join(COLUMNS) + "\n")
        out.write("\t".join(str(values[column]) for column in COLUMNS) + "\n")
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=1000)
    parser.add_argument("--in", dest="piece", type=int, default=50, help="kills of a piece")
    parser.add_argument("--seed", type=int, default=now_ms() % 1_000_000, help="of the first piece; the next ones follow")
    parser.add_argument("--ledger", type=pathlib.Path, default=HERE / "kills.tsv")
    options = parser.parse_args()
    done = 0
    while done < options.kills:
        values = run_piece(options.seed + done, min(options.piece, options.kills - done), options.ledger)
        done += options.piece
        print("kills: %s" % values, file=sys.stderr, flush=True)
        if values["lost"] or values["doubled"] or values["other_findings"]:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
