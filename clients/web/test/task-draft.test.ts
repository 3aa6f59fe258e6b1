import assert from "node:assert/strict";
import { test } from "node:test";
import { draftOf, hasDuration, messageOf } from "../src/pages/directing/task-draft";
import { linksOf } from "../src/pages/directing/task-places";

test("an address without values is a task with defaults, and nonsense is left out", () => {
  assert.deepEqual(draftOf({ kind: "x", minutes: "-1", event: "nothing" }), draftOf({}));
  assert.deepEqual(messageOf(draftOf({ service: " shop " })), { kind: "TASK_KIND_ON_CPU", service: "shop", durationMs: "300000" });
});

test("each kind asks for what it has and nothing else", () => {
  const heap = draftOf({ kind: "TASK_KIND_PPROF", event: "heap", instances: "pod-1\npod-2" });
  assert.ok(!hasDuration(heap));
  assert.deepEqual(messageOf(heap), {
    kind: "TASK_KIND_PPROF", service: "", instances: ["pod-1", "pod-2"], events: ["heap"], durationMs: "0", dumpPeriodMs: undefined,
  });
  const quiet = { when4xx: false, when5xx: true, requireCompleteRequest: false, requireCompleteResponse: false };
  assert.deepEqual(messageOf(draftOf({ kind: "TASK_KIND_NETWORK", service: "a", instances: "b", slower: "0", s4xx: "0" })), {
    kind: "TASK_KIND_NETWORK", service: "a", instance: "b", samplingRules: [quiet],
  });
});

test("a task leads to its own range, and a network task to the network", () => {
  const task = { kind: "TASK_KIND_ON_CPU", service: 'a"b', instance: "pod", process: "app", startMs: "1000", durationMs: "60000" };
  const [profile, diff] = linksOf(task);
  assert.equal(profile.params.q, '{service_name="a\\"b", instance="pod", process_name="app"}');
  assert.deepEqual([profile.params.from, profile.params.to, diff.params.against], ["1000", "121000", "hour"]);
  assert.deepEqual(linksOf({ ...task, kind: "TASK_KIND_NETWORK" }).map(({ page }) => page), ["network"]);
});
