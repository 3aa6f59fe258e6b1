// caller.mjs URL DESCRIPTORS QUESTIONS: as go/caller, with connect-es.
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary, fromJson, toJson } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport, compressionGzip } from "@connectrpc/connect-node";

const [baseUrl, descriptors, file] = process.argv.slice(2);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
const questions = JSON.parse(readFileSync(file, "utf8"));
const gzip = { acceptCompression: [compressionGzip], sendCompression: compressionGzip, compressMinBytes: 0 };
const protocols = {
  "connect proto": createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true }),
  "connect json": createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  "connect json gzip": createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false, ...gzip }),
  "grpc": createGrpcTransport({ baseUrl }),
  "grpc-web": createGrpcWebTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true }),
};

async function ask(transport, { method: name, request }) {
  const [service, method] = name.split("/");
  const described = registry.getService(service);
  const found = described.methods.find((m) => m.name === method);
  const client = createClient(described, transport);
  try {
    const answer = await client[found.localName](fromJson(found.input, request, { ignoreUnknownFields: true }), { timeoutMs: 30000 });
    return { code: "", message: "", answer: toJson(found.output, answer) };
  } catch (caught) {
    const error = ConnectError.from(caught);
    return { code: Code[error.code].replace(/(?!^)[A-Z]/g, "_$&").toLowerCase(), message: error.rawMessage };
  }
}

const out = {};
for (const [name, transport] of Object.entries(protocols)) {
  out[name] = [];
  for (const question of questions) {
    out[name].push(await ask(transport, question));
  }
}
process.stdout.write(JSON.stringify(out), () => process.exit(0));
