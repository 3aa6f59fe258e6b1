import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFlamebearer } from "../src/flame/flamebearer";
import { nameOf } from "../src/flame/tree";

const names = ["total", "main", "work", "idle"];

test("reads one profile, whose boxes lie where their distances say", () => {
  const levels = [[0, 10, 0, 0], [0, 10, 1, 1], [0, 6, 6, 2, 1, 2, 2, 3]];
  const metadata = { format: "single", units: "samples", sampleRate: 1_000_000_000 };
  const { tree, unit } = decodeFlamebearer(JSON.stringify({ flamebearer: { names, levels }, metadata }));
  assert.equal(unit, "nanoseconds");
  assert.deepEqual([...tree.total], [10, 10, 6, 2]);
  assert.deepEqual([...tree.parent.subarray(1)], [0, 1, 1]);
  assert.equal(nameOf(tree, 3), "idle");
});

test("reads two profiles compared", () => {
  const levels = [[0, 10, 0, 0, 4, 0, 0], [0, 10, 10, 0, 4, 4, 1]];
  const text = JSON.stringify({ flamebearer: { names, levels }, metadata: { format: "double", units: "bytes" }, leftTicks: 10, rightTicks: 4 });
  const { tree, unit } = decodeFlamebearer(text);
  assert.equal(unit, "bytes");
  assert.equal(tree.diff?.leftTicks, 10);
  assert.deepEqual([...tree.diff!.rightTotal], [4, 4]);
});

test("refuses boxes without a box above them", () => {
  const levels = [[0, 4, 0, 0], [0, 9, 9, 1]];
  assert.throws(() => decodeFlamebearer(JSON.stringify({ flamebearer: { names, levels } })), /malformed/);
});
