import assert from "node:assert/strict";
import { test } from "node:test";
import { snippets } from "../src/pages/snippets";

const plain = { origin: "http://127.0.0.1:4040", host: "127.0.0.1:4040", token: "" };
const secured = { origin: "https://hearth.example", host: "hearth.example", token: "hearth_secret" };
// Sends no token to an agent.
const WITHOUT_TOKEN = ["Datadog"];

test("every snippet names the server and a service", () => {
  for (const to of [plain, secured]) {
    for (const [name, text] of Object.entries(snippets(to))) {
      assert.ok(text.includes(to.host), name);
      assert.ok(/my-service|otlp/.test(text), name);
    }
  }
});

test("a token is there if it is needed, and no trace of one otherwise", () => {
  for (const [name, text] of Object.entries(snippets(secured))) {
    assert.equal(text.includes("hearth_secret"), !WITHOUT_TOKEN.includes(name), name);
  }
  for (const [name, text] of Object.entries(snippets(plain))) {
    assert.ok(!/token|auth|undefined|false/i.test(text.replace("insecure: true", "")), name);
  }
});

test("what goes over TLS says so", () => {
  assert.match(snippets(plain).OpenTelemetry, /insecure: true/);
  assert.match(snippets(secured).OpenTelemetry, /insecure: false/);
  assert.match(snippets(secured).SkyWalking, /force_tls=true/);
});
