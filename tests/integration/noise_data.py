"""Recordings that are stored by slices of time and by parts, of which random halves do not differ."""

import collections
import gzip
import os
import random

from pprof import Profile
from server import now_ms

GOLDEN = os.path.join(os.path.dirname(__file__), "..", "golden", "noise", "python.txt.gz")
SHARED = os.path.join(os.path.dirname(__file__), *[".."] * 3, "shared", "data", "jfr", "expected",
                      "asprof-wall.wall.collapsed.gz")

MINUTE = 60_000
PERIOD = 10_000_000
SLICES, PARTS = 12, 10
START = now_ms() // (10 * MINUTE) * (10 * MINUTE) - 30 * MINUTE


def read_runs(path):
    """[{stack: samples}] in the order of time."""
    runs = collections.defaultdict(dict)
    with gzip.open(path, "rt") as lines:
        for line in lines:
            run, stack, count = line.split()
            runs[int(run)][stack] = int(count)
    return [runs[run] for run in sorted(runs)]


def read_collapsed(path):
    """A recording without times: every sample is a run."""
    runs = []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            stack, _, value = line.rpartition(" ")
            runs += [{stack: 1}] * (int(value.strip("[]\n")) // PERIOD)
    random.Random(2).shuffle(runs)
    return runs


def store(server, service, runs, plant=None, plant_percent=5, slices=SLICES, parts=PARTS, even_percent=0):
    """
    Divides a recording into slices by time, and each slice into parts at random; every part is a series. Odd parts have
    plant_percent more samples, even ones even_percent, of the stack `plant`, or of random ones of a list.
    """
    plants = [plant] if isinstance(plant, str) else plant
    rng = random.Random(4)
    cells = collections.defaultdict(collections.Counter)
    for i, run in enumerate(runs):
        cells[i * slices // len(runs), rng.randrange(parts)].update(run)
    for (minute, part), stacks in cells.items():
        profile = Profile([("cpu", "nanoseconds")], time_ns=(START + minute * MINUTE + 1000) * 1_000_000)
        for _ in range(sum(stacks.values()) if plants else 0):
            if rng.random() * 100 < (plant_percent if part % 2 == 1 else even_percent):
                stacks[rng.choice(plants) if len(plants) > 1 else plants[0]] += 1
        for stack, count in stacks.items():
            profile.add(stack.split(";"), [count * PERIOD])
        server.push(profile.encode(), {"service_name": service, "__name__": "process_cpu", "part": str(part)})


def halves(service, rng):
    parts = [str(i) for i in range(PARTS)]
    rng.shuffle(parts)
    return [selector(service, half) for half in (parts[: PARTS // 2], parts[PARTS // 2 :])]


def selector(service, parts):
    return '{service_name="%s", part=~"%s"}' % (service, "|".join(parts))
