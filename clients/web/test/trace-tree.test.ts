import assert from "node:assert/strict";
import { test } from "node:test";
import { nanosecondsBetween, placeSpans } from "../src/pages/traces/trace-tree";

const names = (placed: ReturnType<typeof placeSpans>) => placed.map(({ span, depth }) => `${depth} ${span.spanId}`);

test("parents stand before children, siblings in the order of their starts", () => {
  const spans = [
    { spanId: "c", parentId: "a", startNs: "1700000000000000003" },
    { spanId: "b", parentId: "a", startNs: "1700000000000000002" },
    { spanId: "d", parentId: "b", startNs: "1700000000000000009" },
    { spanId: "a", parentId: "not here", startNs: "1700000000000000001" },
  ];
  assert.deepEqual(names(placeSpans(spans)), ["0 a", "1 b", "2 d", "1 c"]);
});

test("spans that are each other's parents are all shown once", () => {
  const spans = [{ spanId: "a", parentId: "b" }, { spanId: "b", parentId: "a" }, { spanId: "c", parentId: "c" }];
  assert.deepEqual(names(placeSpans(spans)).map((each) => each.slice(2)).sort(), ["a", "b", "c"]);
});

test("nanoseconds since the epoch are subtracted exactly", () => {
  assert.equal(nanosecondsBetween("1700000000000000001", "1700000000000000004"), 3);
});
