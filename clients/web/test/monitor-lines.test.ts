import assert from "node:assert/strict";
import { test } from "node:test";
import { maximaOf } from "../src/pages/directing/monitor-lines";

test("a step shows its highest and lowest value, and a step without values is a gap", () => {
  const span = { startMs: 0, endMs: 60_000 };
  const points = [[0, 1], [5_000, 97], [10_000, 2], [31_000, 3], [70_000, 200]].map(([at, value]) => ({ atMs: String(at), value }));
  const { timesMs, lines } = maximaOf({ lines: [{ process: "idle", points: [{ atMs: "100" }] }, { process: "app", instance: "pod-1", points }], stepMs: 0 }, span);
  assert.deepEqual(timesMs, [0, 15_000, 30_000, 45_000]);
  assert.deepEqual(lines, [
    { name: "app (pod-1)", peak: 97, values: [97, null, 3, null], lows: [1, null, 3, null] },
    { name: "idle", peak: 0, values: [0, null, null, null], lows: [0, null, null, null] },
  ]);
});

test("a day has a bounded number of steps", () => {
  assert.ok(maximaOf({ lines: [], stepMs: 0 }, { startMs: 0, endMs: 86_400_000 }).timesMs.length <= 720);
});

test("steps of the server are drawn as they are, without gaps between them", () => {
  const points = (value: number) => [{ process: "app", points: [3600, 3900, 4200].map((s) => ({ atMs: String(1000 * s), value })) }];
  const { timesMs, lines } = maximaOf({ lines: points(9), lows: points(2), stepMs: 300_000 }, { startMs: 3_700_000, endMs: 4_300_000 });
  assert.deepEqual(timesMs, [3_600_000, 3_900_000, 4_200_000]);
  assert.deepEqual(lines, [{ name: "app", peak: 9, values: [9, 9, 9], lows: [2, 2, 2] }]);
});
