// spans.mjs PROTOCOL URL: the SDK of @opentelemetry as in its manual; prints the spans that it exported as JSON.
import { SpanKind, SpanStatusCode, context, trace } from "@opentelemetry/api";
import { OTLPTraceExporter as GrpcExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as JsonExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtoExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const [protocol, base] = process.argv.slice(2);
const url = base + (protocol === "grpc" ? "" : "/v1/traces");
const exporter = new { grpc: GrpcExporter, json: JsonExporter, proto: ProtoExporter }[protocol]({ url, compression: "gzip" });
const service = "conformance.opentelemetry.node." + protocol;
const resource = resourceFromAttributes({ "service.name": service, "service.instance.id": "one", pod: "pod-1" });
const provider = new NodeTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(exporter)] });
provider.register();
const tracer = trace.getTracer("conformance");
const made = [];

function remember(span, parent) {
  const { traceId, spanId } = span.spanContext();
  made.push({ trace: traceId, id: spanId, parent: parent?.spanContext().spanId ?? null, name: span.name });
}

for (let order = 0; order < 50; order++) {
  const root = tracer.startSpan("GET /order", { kind: SpanKind.SERVER, attributes: { "http.route": "/order", n: order } });
  remember(root);
  root.addEvent("began", { pod: "of an event" });
  const child = tracer.startSpan("SELECT", { kind: SpanKind.CLIENT, links: [{ context: root.spanContext() }] },
    trace.setSpan(context.active(), root));
  remember(child, root);
  child.setStatus({ code: SpanStatusCode.ERROR, message: "no such order" });
  child.end();
  root.end();
}
await provider.forceFlush();
await provider.shutdown();
console.log(JSON.stringify({ service, spans: made }));
