"""ddprofiled.py SECONDS: a program under ddtrace-run, with nothing of ddtrace in it but the spans of its requests."""

import sys
import threading
import time

from ddtrace.trace import tracer

lock, kept = threading.Lock(), []


def burn_processor(until):
    n = 1
    while time.monotonic() < until:
        with lock:
            for i in range(10_000):
                n = (n * 1103515245 + i) % 2147483648
        kept.append(bytearray(5000))
        if len(kept) > 1000:
            kept.clear()
    return n


def answer():
    with tracer.trace("web.request", resource="GET /orders", span_type="web"):
        with tracer.trace("work"):
            burn_processor(time.monotonic() + 0.5)


def worker(end):
    while time.monotonic() < end:
        answer()


end = time.monotonic() + int(sys.argv[1])
threads = [threading.Thread(target=worker, args=(end,), name="worker-%d" % i) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
