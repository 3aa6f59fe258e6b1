#!/usr/bin/python3
"""Count the instructions of Hearth's hot paths and compare them with tests/perf/instructions.txt.

instructions.py --bin DIR [--update]

Fails when a step takes 3 % more than what is kept. Counted are instructions of our own code: what libdeflate, the C library
and others choose by the processor they find differs from machine to machine, and none of it is ours to keep small. (That
they are called more often shows in the benchmarks.) The profiles are made from tests/golden/pprof, always the same ones.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "instructions.txt"
SEED = HERE.parent / "golden/pprof/go-cpu-labels.pb.gz"
PROFILES = 24
ROUNDS = 9  # the hash tables are seeded anew in each process, which changes collisions: medians
PER_SAMPLE = ("merge", "merge_multiple", "sum")
PER_ITEM = {"totals": 240, "group": 1000}  # as in instructions.c
ALLOWED = 1.03
HEAD = """# Instructions of our own code, by callgrind: of a profile; for merge, merge_multiple and sum of a sample; for totals of a
# packed total that is read; for group of a series that is grouped by a label.
# Compared by ctest -L perf. To accept new counts, say in the commit why, and run
#   tests/perf/instructions.py --bin build/bin --update
"""


def own_cost(path, program):
    """(name of the dump, instructions of functions that lie in the program itself)."""
    names, total, own, skip = {}, 0, False, False
    name = None
    for line in path.read_text().splitlines():
        if line.startswith("desc: Trigger: Client Request: "):
            name = line.rsplit(" ", 1)[1]
        elif line.startswith("ob="):
            found = re.match(r"ob=(\(\d+\))(?: (.*))?$", line)
            if found[2]:
                names[found[1]] = found[2]
            own = os.path.basename(names[found[1]]) == program
        elif line.startswith("cob="):
            found = re.match(r"cob=(\(\d+\))(?: (.*))?$", line)
            if found[2]:
                names[found[1]] = found[2]
        elif line.startswith("calls="):
            skip = True  # the next line is the cost of what is called
        elif re.match(r"[+\-*\d]", line):
            if not skip and own:
                total += int(line.split()[1])
            skip = False
    return name, total


def count_once(directory, pool, scratch):
    out = os.path.join(scratch, "out")
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--callgrind-out-file=" + out,
         os.path.join(directory, "perf_instructions"), pool],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    if done.returncode != 0:
        sys.exit("instructions: " + done.stderr[-2000:])
    samples = int(re.search(r"(\d+) samples", done.stdout)[1])
    counts = {}
    for path in sorted(pathlib.Path(scratch).glob("out.*")):
        name, total = own_cost(path, "perf_instructions")
        if name:
            counts[name] = total / (samples if name in PER_SAMPLE else PROFILES * PER_ITEM.get(name, 1))
    return counts


def count(directory):
    with tempfile.TemporaryDirectory() as scratch:
        pool = os.path.join(scratch, "pool")
        subprocess.run([os.path.join(directory, "bench_make_pool"), pool, "1", str(PROFILES), str(SEED)], check=True)
        rounds = [count_once(directory, pool, scratch) for _ in range(ROUNDS)]
    counts = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    counts["ingest"] = sum(n for name, n in counts.items() if name not in PER_SAMPLE and name not in PER_ITEM)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, metavar="DIR", help="programs of the plain build")
    parser.add_argument("--update", action="store_true", help="keep the new counts")
    options = parser.parse_args()
    counts = count(options.bin)
    if options.update:
        KEPT.write_text(HEAD + "".join("%s %.2f\n" % pair for pair in counts.items()))
    kept = dict(line.split() for line in KEPT.read_text().splitlines() if line and not line.startswith("#"))
    worse = 0
    for name in sorted(set(counts) | set(kept), key=lambda name: list(counts).index(name) if name in counts else -1):
        if name not in counts or name not in kept:
            print("%-15s is only in %s" % (name, "the kept counts" if name in kept else "the new ones"))
            worse += 1
            continue
        ratio = counts[name] / float(kept[name])
        print("%-15s %12.1f %+.1f %%" % (name, counts[name], 100 * (ratio - 1)))
        worse += ratio > ALLOWED
    if worse:
        print("%d more than 3 %% above tests/perf/instructions.txt, which says what to do" % worse)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
