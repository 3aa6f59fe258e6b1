import assert from "node:assert/strict";
import { test } from "node:test";
import { treeOfForest } from "../src/flame/forest";
import { nameOf } from "../src/flame/tree";

test("trees with ids of their own become one tree without losing a value", () => {
  const tree = treeOfForest([
    [
      { id: 1, parentId: 0, name: "main", total: 10 },
      { id: 2, parentId: 1, name: "serve", total: 7 },
      { id: 3, parentId: 1, name: "parse", total: 2 },
    ],
    [{ id: 1, parentId: 0, name: "idle", total: 5 }],
    [{ id: 1, parentId: 0, name: "main", total: 3 }],
  ]);
  const nodes = Array.from({ length: tree.n }, (_, i) => [nameOf(tree, i), tree.total[i], tree.self[i], tree.depth[i]]);
  assert.deepEqual(nodes, [["total", 18, 0, 0], ["main", 13, 4, 1], ["serve", 7, 7, 2], ["parse", 2, 2, 2], ["idle", 5, 5, 1]]);
});

test("an empty analysis is an empty picture", () => {
  const tree = treeOfForest([]);
  assert.deepEqual([tree.n, tree.total[0]], [1, 0]);
});
