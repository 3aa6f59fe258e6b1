import assert from "node:assert/strict";
import { test } from "node:test";
import { bandPath, linePath, nearestTime, nearestValue, runsOf, toMs, toX, toY, traceOf, valueTicks } from "../src/chart/line-path";

const frame = { width: 100, height: 50, fromMs: 1000, toMs: 2000, most: 10 };

test("times and values have places, and places have times", () => {
  assert.deepEqual([1000, 1500, 2000].map((ms) => toX(frame, ms)), [0, 50, 100]);
  assert.deepEqual([-5, 25, 300].map((x) => toMs(frame, x)), [1000, 1250, 2000]);
  assert.deepEqual([0, 10].map((value) => toY(frame, value)), [50, 0]);
  assert.equal(toX({ ...frame, toMs: 1000 }, 1000), 50, "a single time is in the middle");
});

test("the cursor is at the nearest time", () => {
  const times = [10, 20, 40];
  assert.deepEqual([-9, 10, 14, 16, 29, 31, 99].map((ms) => nearestTime(times, ms)), [0, 0, 0, 1, 1, 2, 2]);
  assert.equal(nearestTime([], 5), 0);
});

test("between sparse values the pointer finds the nearest", () => {
  const lines = [{ values: [1, null, null, null, null] }, { values: [null, null, null, null, 0] }];
  assert.deepEqual([0, 1, 2, 3].map((at) => nearestValue(lines, at, 1)), [0, 0, 2, 4]);
});

test("an axis has few round values", () => {
  assert.deepEqual(valueTicks(10, 3), [0, 5, 10]);
  assert.deepEqual(valueTicks(0.7, 3), [0, 0.5]);
  assert.deepEqual(valueTicks(97, 5), [0, 20, 40, 60, 80]);
  assert.deepEqual(valueTicks(3000, 3, "bytes/s"), [0, 1024, 2048]);
  for (let i = 0; i < 300; i++) {
    const top = 10 ** (Math.random() * 30 - 10);
    const most = 3 + Math.random() * 8;
    const ticks = valueTicks(top, most, i % 2 === 0 ? "bytes" : "");
    assert.ok(ticks.length >= 2 && ticks.length <= most + 1 && ticks.at(-1)! <= top * (1 + 1e-9), `${top} ${most}: ${ticks}`);
  }
});

test("gaps stay gaps, and a value between two of them is a dot", () => {
  const values = [1, 2, null, 4, null, null, 5, 6];
  assert.deepEqual(runsOf(values), [[0, 1], [3, 3], [6, 7]]);
  const path = linePath(values.map((_, i) => i * 10), values, (value) => value);
  assert.equal(path, "M0 1L10 2M28.25 4a1.75 1.75 0 1 0 3.5 0a1.75 1.75 0 1 0 -3.5 0M60 5L70 6");
  assert.equal(bandPath([0, 1, 2], [5, null, 7], [1, null, 2], (value) => value), "M0 5L0 1ZM2 7L2 2Z");
});

test("what fits is drawn as it is", () => {
  const times = Array.from({ length: 11 }, (_, i) => 1000 + i * 100);
  const values = times.map((_, i) => (i === 5 ? null : i));
  const trace = traceOf(frame, times, values);
  assert.deepEqual(trace.xs, times.map((_, i) => i * 10));
  assert.equal(trace.highs, values);
  assert.equal(trace.lows, null);
});

test("where points are denser than pixels, no extreme and no gap is lost", () => {
  const n = 10_000;
  const times = Array.from({ length: n }, (_, i) => 1000 + (i * 1000) / (n - 1));
  const values = times.map((ms, i) => (ms > 1400 && ms < 1450 ? null : i === 7777 ? 99 : i === 8888 ? -3 : 5 + Math.sin(i)));
  const { xs, highs, lows } = traceOf(frame, times, values);
  assert.equal(xs.length, 100);
  assert.equal(highs[77], 99);
  assert.equal(lows![88], -3);
  assert.deepEqual(runsOf(highs), [[0, 39], [45, 99]]);
  assert.deepEqual(runsOf(highs), runsOf(lows!));
  assert.ok(highs.every((high, i) => high === null || high >= lows![i]!));
  // Of values that stand for several, the smallest is kept, too.
  assert.equal(traceOf(frame, times, values, values.map((value) => value && value - 1)).lows![88], -4);
});
