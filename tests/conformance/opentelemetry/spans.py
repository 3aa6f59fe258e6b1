"""spans.py PROTOCOL URL: opentelemetry-sdk as in its manual; prints the spans that it exported as JSON."""

import json
import sys

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

protocol, url = sys.argv[1:]
if protocol == "grpc":
    from grpc import Compression
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    exporter = OTLPSpanExporter(endpoint=url, compression=Compression.Gzip)
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import Compression, OTLPSpanExporter

    exporter = OTLPSpanExporter(endpoint=url + "/v1/traces", compression=Compression.Gzip)

service = "conformance.opentelemetry.python." + protocol
provider = TracerProvider(resource=Resource.create({"service.name": service, "service.instance.id": "one", "pod": "pod-1"}))
processor = BatchSpanProcessor(exporter)
provider.add_span_processor(processor)
tracer = provider.get_tracer("conformance")
made = []


def remember(span):
    context = span.get_span_context()
    parent = span.parent and "%016x" % span.parent.span_id
    made.append({"trace": "%032x" % context.trace_id, "id": "%016x" % context.span_id, "parent": parent, "name": span.name})


for order in range(50):
    with tracer.start_as_current_span("GET /order", kind=trace.SpanKind.SERVER, attributes={"http.route": "/order", "n": order}) as root:
        remember(root)
        root.add_event("began", {"pod": "of an event"})
        with tracer.start_as_current_span("SELECT", kind=trace.SpanKind.CLIENT, links=[trace.Link(root.get_span_context())]) as child:
            remember(child)
            child.set_status(trace.Status(trace.StatusCode.ERROR, "no such order"))
assert processor.force_flush()
provider.shutdown()
print(json.dumps({"service": service, "spans": made}))
