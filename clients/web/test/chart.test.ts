import assert from "node:assert/strict";
import { test } from "node:test";
import { othersOf, type Line } from "../src/api/timeline";
import { pointOf } from "../src/chart/brush";
import { clustersOf } from "../src/chart/markers";

test("others are what the lines leave of the sum, and gaps stay gaps", () => {
  const line = (values: (number | null)[], mean: number): Line => ({ labels: {}, values, mean });
  const rest = othersOf(line([5, null, 3], 4), [line([2, null, null], 1), line([1, null, 3], 2)]);
  assert.deepEqual(rest.values, [2, null, 0]);
  assert.equal(rest.mean, 1); // a quarter of the sum
});

test("markers too near to be told apart share one", () => {
  const markers = [{ atMs: 30, name: "c" }, { atMs: 0, name: "a" }, { atMs: 10, name: "b" }];
  const names = clustersOf(markers, (ms) => ms).map((cluster) => cluster.markers.map(({ name }) => name));
  assert.deepEqual(names, [["a", "b"], ["c"]]);
});

test("keys move within the chart", () => {
  assert.equal(pointOf("ArrowLeft", 0, 5), 0);
  assert.equal(pointOf("End", 0, 5), 4);
  assert.equal(pointOf("PageUp", 4, 5), 0);
  assert.equal(pointOf("a", 4, 5), undefined);
});
