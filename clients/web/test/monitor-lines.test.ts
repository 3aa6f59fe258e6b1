import assert from "node:assert/strict";
import { test } from "node:test";
import { maximaOf } from "../src/pages/directing/monitor-lines";

test("a step shows its largest value and a step without values is a gap", () => {
  const span = { startMs: 0, endMs: 60_000 };
  const points = [[0, 1], [5_000, 97], [10_000, 2], [31_000, 3], [70_000, 200]].map(([at, value]) => ({ atMs: String(at), value }));
  const { timesMs, lines } = maximaOf([{ process: "idle", points: [{ atMs: "100" }] }, { process: "app", instance: "pod-1", points }], span);
  assert.deepEqual(timesMs, [0, 15_000, 30_000, 45_000]);
  assert.deepEqual(lines, [
    { name: "app (pod-1)", peak: 97, values: [97, null, 3, null] },
    { name: "idle", peak: 0, values: [0, null, null, null] },
  ]);
});

test("a day has a bounded number of steps", () => {
  assert.ok(maximaOf([], { startMs: 0, endMs: 86_400_000 }).timesMs.length <= 720);
});
