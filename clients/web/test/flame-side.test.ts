import assert from "node:assert/strict";
import { test } from "node:test";
import { sideOf } from "../src/flame/side";
import { checkTree, stacksOf, treeOfStacks } from "./flame-fixtures";

const both = treeOfStacks({ "main;parse": [5, 0], "main;write": [1, 4], "main;read;lock": [0, 2], idle: [3, 3] });

test("a side has its own frames and nothing of the other", () => {
  const left = sideOf(both, "left");
  const right = sideOf(both, "right");
  checkTree(left.tree);
  checkTree(right.tree);
  assert.deepEqual(stacksOf(left.tree), { "main;parse": 5, "main;write": 1, idle: 3 });
  assert.deepEqual(stacksOf(right.tree), { "main;write": 4, "main;read;lock": 2, idle: 3 });
});

test("frames are found on both sides by the node of the diff", () => {
  for (const side of ["left", "right"] as const) {
    const { tree, inDiff, ofDiff } = sideOf(both, side);
    for (let i = 0; i < tree.n; i++) {
      assert.equal(ofDiff[inDiff[i]!], i);
      assert.equal(tree.name[i], both.name[inDiff[i]!]);
      assert.equal(tree.depth[i], both.depth[inDiff[i]!]);
    }
  }
  const parse = both.names.indexOf("parse");
  assert.equal(sideOf(both, "right").ofDiff[both.name.indexOf(parse)], -1);
});

test("a side without samples is its root", () => {
  const { tree } = sideOf(treeOfStacks({ main: [0, 7] }), "left");
  assert.equal(tree.n, 1);
  assert.equal(tree.total[0], 0);
});
