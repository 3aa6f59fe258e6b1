"""ddspans.py URL SERVICE: ddtrace as in its manual, on a program that answers two requests at the same time, with the server as
its agent. Says the ids as JSON."""

import json
import os
import sys
import threading
import time

os.environ.update(
    DD_SERVICE=sys.argv[2], DD_TRACE_AGENT_URL=sys.argv[1], DD_PROFILING_STACK_ENABLED="true",
    DD_INSTRUMENTATION_TELEMETRY_ENABLED="false", DD_REMOTE_CONFIGURATION_ENABLED="false", DD_TRACE_STARTUP_LOGS="false",
    DD_TRACE_LOG_STREAM_HANDLER="false",
)

from ddtrace.profiling import Profiler  # noqa: E402
from ddtrace.trace import tracer  # noqa: E402


def burn(until):
    n = 1
    while time.monotonic() < until:
        for i in range(10_000):
            n = (n * 1103515245 + i) % 2147483648
    return n


def price_the_order(until):
    return burn(until) + 1


def draw_the_invoice(until):
    return burn(until) + 2


def outside_of_spans(until):
    return burn(until) + 3


def answer(work, said):
    """A request: a span of the framework, and one of the work below it."""
    with tracer.trace("web.request", resource="GET /" + work.__name__, span_type="web") as root:
        with tracer.trace("work", resource=work.__name__) as span:
            said[work.__name__] = {"span": span.span_id, "root": root.span_id, "trace": root.trace_id}
            work(time.monotonic() + 6)


profiler = Profiler()
profiler.start()
outside_of_spans(time.monotonic() + 1)
said = {}
threads = [threading.Thread(target=answer, args=(work, said)) for work in (price_the_order, draw_the_invoice)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
profiler.stop(flush=True)
print(json.dumps(said))
