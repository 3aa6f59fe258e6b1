"""Records itself: samples of a program that does several things by turns, in the order of time.

Writes lines "RUN STACK COUNT": a run is 20 samples that follow each other, so what belongs together in time stays
together however the recording is divided.
"""

import collections
import hashlib
import json
import random
import re
import signal
import sys
import zlib

RUN = 20
SAMPLES = 8000
PERIOD_SECONDS = 0.002

stacks = []


def sample(_signal, frame):
    names = []
    while frame is not None:
        names.append(frame.f_code.co_qualname.replace(" ", "") if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)
        frame = frame.f_back
    stacks.append(";".join(reversed(names)))


def make_orders(rng, n):
    return [{"id": i, "items": [rng.randrange(1000) for _ in range(rng.randrange(1, 30))], "note": "x" * rng.randrange(80)} for i in range(n)]


def count_words(text):
    return collections.Counter(word.lower() for word in re.findall(r"[a-z]+", text))


def find_cheapest(orders):
    return sorted(orders, key=lambda order: (sum(order["items"]), order["id"]))[:10]


def compress(orders):
    data = json.dumps(orders, indent=1, sort_keys=True).encode()
    return hashlib.sha256(zlib.compress(data, 6)).hexdigest()


def draw_fractal(size):
    inside = 0
    for y in range(size):
        for x in range(size):
            z, c = 0j, complex(3 * x / size - 2, 2 * y / size - 1)
            for _ in range(20):
                z = z * z + c
                if abs(z) > 2:
                    break
            else:
                inside += 1
    return inside


def main():
    rng = random.Random(11)
    signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, PERIOD_SECONDS, PERIOD_SECONDS)
    while len(stacks) < SAMPLES:
        orders = make_orders(rng, rng.randrange(50, 400))
        find_cheapest(orders)
        text = compress(orders)
        count_words(json.dumps(json.loads(json.dumps(orders)), indent=1) + text)
        if rng.random() < 0.3:
            draw_fractal(rng.randrange(10, 60))
    signal.setitimer(signal.ITIMER_PROF, 0)
    for at in range(0, SAMPLES, RUN):
        for stack, count in sorted(collections.Counter(stacks[at : at + RUN]).items()):
            print(at // RUN, stack, count)


if __name__ == "__main__":
    sys.exit(main())
