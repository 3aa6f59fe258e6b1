"""spans.py URL APPLICATION TRACEPARENT: pyroscope-io with pyroscope-otel and OpenTelemetry as in their manuals, on a program that answers two
requests of that trace at the same time. Says their spans as JSON."""

import json
import sys
import threading
import time

import pyroscope
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pyroscope.otel import PyroscopeSpanProcessor


def burn(until):
    n = 1
    while time.monotonic() < until:
        for i in range(100_000):
            n = (n * 1103515245 + i) % 2147483648
    return n


def price_the_order(until):
    return burn(until) + 1


def draw_the_invoice(until):
    return burn(until) + 2


def outside_of_spans(until):
    return burn(until) + 3


def answer(work, context, spans):
    with trace.get_tracer("conformance").start_as_current_span("GET /" + work.__name__, context) as span:
        spans[work.__name__] = format(span.get_span_context().span_id, "016x")
        work(time.monotonic() + 6)


url, service = sys.argv[1:3]
pyroscope.configure(application_name=service, server_address=url, sample_rate=100, upload_interval=5, tags={"region": "eu"})
provider = TracerProvider(resource=Resource.create({"service.name": service, "region": "eu"}))
provider.add_span_processor(PyroscopeSpanProcessor())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url + "/v1/traces")))
trace.set_tracer_provider(provider)

outside_of_spans(time.monotonic() + 1)
# Requests of another service, which began the trace.
parent = TraceContextTextMapPropagator().extract({"traceparent": sys.argv[3]})
spans = {}
threads = [threading.Thread(target=answer, args=(work, parent, spans)) for work in (price_the_order, draw_the_invoice)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
provider.shutdown()
time.sleep(6)  # what was sampled last is sent when its interval ends
pyroscope.shutdown()
print(json.dumps(spans))
