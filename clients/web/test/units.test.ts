import assert from "node:assert/strict";
import { test } from "node:test";
import { formatChange, formatCount, formatDuration, formatShare, formatValue } from "../src/units";

// The first ten are the cases of tests/unit/base/test_human.c.
const values: [number, string, string][] = [
  [0, "nanoseconds", "0 ns"],
  [999, "nanoseconds", "999 ns"],
  [999.6, "nanoseconds", "1.00 µs"],
  [1234567890, "nanoseconds", "1.23 s"],
  [90e9, "nanoseconds", "1.50 min"],
  [36e11, "nanoseconds", "1 h"],
  [1536, "bytes", "1.50 KiB"],
  [-1536, "bytes", "-1.50 KiB"],
  [1234, "count", "1.23k"],
  [100, "anything", "100"],
  [1125, "count", "1.12k"],
  [1375, "count", "1.38k"],
  [-1125, "count", "-1.12k"],
  [100.5, "count", "100"],
  [3.21, "cores", "3.21 cores"],
  [1, "cores", "1 core"],
  [1536, "bytes/s", "1.50 KiB/s"],
  [2 ** 40 * 5000, "bytes", "5000 TiB"],
];

test("values have three digits in the largest fitting unit, as in the command line client", () => {
  for (const [value, unit, want] of values) {
    assert.equal(formatValue(value, unit), want);
  }
});

test("shares never round something to nothing", () => {
  assert.equal(formatShare(0, 100), "0.00%");
  assert.equal(formatShare(1, 1e6), "<0.01%");
  assert.equal(formatShare(1, 8), "12.50%");
  assert.equal(formatShare(1, 0), "0.00%");
  assert.equal(formatChange(1, 8), "+12.50%");
  assert.equal(formatChange(-1, 1e6), "-<0.01%");
  assert.equal(formatChange(1, 1e6), "+<0.01%");
  assert.equal(formatChange(-1, 8), "-12.50%");
});

test("durations and counts", () => {
  assert.equal(formatDuration(1500), "1.50 s");
  assert.equal(formatCount(1204), "1,204");
  assert.equal(formatCount(-1234567), "-1,234,567");
  assert.equal(formatCount(12), "12");
});
