import assert from "node:assert/strict";
import { test } from "node:test";
import { wholeSteps } from "../src/api/functions";
import { treeOfNodes } from "../src/flame/nodes";
import { checkTree, stacksOf } from "./flame-fixtures";

test("a list of nodes in pre-order becomes a tree below its first node", () => {
  const tree = treeOfNodes([
    { name: "encode", parent: -1, self: "1", total: "10" },
    { name: "alloc", self: "4", total: "9" },
    { name: "encode", parent: 1, self: "5", total: "5" },
  ]);
  checkTree(tree);
  assert.deepEqual(stacksOf(tree), { "": 1, alloc: 4, "alloc;encode": 5 });
  assert.equal(tree.name[2], tree.name[0]);
});

test("a parent that does not stand before its child is refused", () => {
  for (const parent of [2, 1, -1, NaN]) {
    assert.throws(() => treeOfNodes([{ name: "a" }, { name: "b", parent }]), /malformed/);
  }
  assert.equal(treeOfNodes([]).n, 1);
});

test("steps end a millisecond before whole hours, and lack nothing of the range", () => {
  const hour = 3_600_000;
  const whole = wholeSteps({ startMs: 5 * hour + 7, endMs: 9 * hour + 1 }, 3600);
  assert.deepEqual(whole, { startMs: 5 * hour - 1, endMs: 10 * hour - 1 });
});
