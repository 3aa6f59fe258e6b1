import assert from "node:assert/strict";
import { test } from "node:test";
import { cellAt, toHeat } from "../src/api/heatmap";
import { colourIndex, shadeOf, SHADES, shadesOf } from "../src/chart/heatmap";

const span = { startMs: 1_000_000, endMs: 1_030_000 };
const slot = (timestamp: number, counts: number[]) => ({ timestamp: String(timestamp), yMin: [100, 200, 300], counts });

test("an answer becomes columns of time and rows of values", () => {
  const heat = toHeat({ series: [{ slots: [slot(1_010_000, [0, 2, 0]), slot(1_030_000, [1, 0, 5])] }] }, span, 10);
  assert.deepEqual(heat.endsMs, [1_010_000, 1_020_000, 1_030_000]);
  assert.deepEqual(heat.edges, [100, 200, 300, 400]);
  assert.deepEqual([...heat.counts], [0, 2, 0, 0, 0, 0, 1, 0, 5]);
  assert.equal(heat.most, 5);
  assert.equal(heat.all, 8);
});

test("a moment and a value find their cell", () => {
  const heat = toHeat({ series: [{ slots: [slot(1_010_000, [0, 2, 0])] }] }, span, 10);
  assert.deepEqual(cellAt(heat, 1_005_000, 250), { column: 0, row: 1 });
  assert.deepEqual(cellAt(heat, 1_010_000, 100), { column: 0, row: 0 });
  assert.deepEqual(cellAt(heat, 1_010_001, 350), { column: 1, row: 2 });
  assert.equal(cellAt(heat, 999_000, 250), null);
  assert.equal(cellAt(heat, 1_005_000, 99), null);
  assert.equal(cellAt(heat, 1_005_000, NaN), null);
});

test("equal values make one row, and no values none", () => {
  const equal = { series: [{ slots: [{ timestamp: "1010000", yMin: [7, 7, 7], counts: [0, 0, 4] }] }] };
  const heat = toHeat(equal, span, 10);
  assert.deepEqual(heat.edges, [7, 7]);
  assert.deepEqual([...heat.counts], [4, 0, 0]);
  assert.deepEqual(cellAt(heat, 1_005_000, 7), { column: 0, row: 0 });
  assert.equal(toHeat({}, span, 10).all, 0);
});

test("shades rise with the counts, and none is left out", () => {
  for (const most of [1, 2, 5, 6, 9, 37, 1000, 1e7]) {
    const bounds = shadesOf(most);
    assert.equal(bounds[0], 1);
    assert.ok(bounds.every((bound, i) => bound <= most && (i === 0 || bound > bounds[i - 1]!)), String(bounds));
    bounds.forEach((bound, i) => assert.equal(shadeOf(bounds, bound), i));
    assert.equal(shadeOf(bounds, most), bounds.length - 1);
    assert.equal(colourIndex(bounds.length - 1, bounds.length), SHADES - 1);
  }
});
