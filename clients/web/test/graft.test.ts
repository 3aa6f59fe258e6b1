import assert from "node:assert/strict";
import { test } from "node:test";
import { nameOf, type FlameTree } from "../src/flame/tree";
import { graft, othersBelow } from "../src/pages/profile/graft";
import { checkTree, stacksOf, treeOfStacks } from "./flame-fixtures";

const cut = treeOfStacks({ "main;a;b": 5, "main;a;other": 3, "main;other": 2, main: 1 });
const nodeNamed = (tree: FlameTree, name: string) => Array.from({ length: tree.n }, (_, i) => i).find((i) => nameOf(tree, i) === name)!;

test("a whole subtree takes the place of the cut one, and nothing is lost", () => {
  const whole = treeOfStacks({ "main;a": 1, "main;a;b": 5, "main;a;x;y": 2 });
  const grafted = graft(cut, nodeNamed(cut, "a"), whole, ["main", "a"]);
  checkTree(grafted);
  assert.deepEqual(stacksOf(grafted), { main: 1, "main;other": 2, "main;a": 1, "main;a;b": 5, "main;a;x;y": 2 });
  assert.equal(grafted.total[0], cut.total[0]);
  assert.deepEqual(othersBelow(cut, 0), { places: 2, total: 5 });
  assert.deepEqual(othersBelow(grafted, nodeNamed(grafted, "a")), { places: 0, total: 0 });
});

test("an answer that lacks the frame changes nothing", () => {
  const empty = treeOfStacks({ elsewhere: 1 });
  assert.equal(graft(cut, nodeNamed(cut, "a"), empty, ["main", "a"]), cut);
});
