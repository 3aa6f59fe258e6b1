import assert from "node:assert/strict";
import { test } from "node:test";
import { toTimeline } from "../src/api/timeline";
import { nearest, spread } from "../src/chart/exemplars";

const at = (index: number, value: number) => ({ index, value, ms: 0, profileId: String(index) });

test("of neighbours the largest profile is marked", () => {
  const kept = spread([at(0, 1), at(1, 9), at(2, 3), at(40, 2)], ({ index }) => 10 * index);
  assert.deepEqual(kept.map(({ index }) => index).sort(), [1, 40]);
});

test("a mark is hit near its middle", () => {
  const marks = [{ x: 50, y: 20, exemplar: at(5, 1) }];
  assert.equal(nearest(marks, 60, 12), marks[0]);
  assert.equal(nearest(marks, 63, 20), undefined);
});

test("profiles of a single line keep their step", () => {
  const point = (ms: number, profileId: string) => ({ timestamp: String(ms), value: 4, exemplars: [{ timestamp: String(ms - 3), profileId, value: "4" }] });
  const span = { startMs: 1000, endMs: 5000 };
  const one = { series: [{ points: [point(2000, "a"), point(9000, "b")] }], unit: "count" };
  assert.deepEqual(toTimeline(one, span, 1).exemplars, [{ index: 1, profileId: "a", ms: 1997, value: 4 }]);
  assert.deepEqual(toTimeline({ series: [...one.series, ...one.series] }, span, 1).exemplars, []);
});
