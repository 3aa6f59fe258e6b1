import assert from "node:assert/strict";
import { test } from "node:test";
import { functionsOf } from "../src/flame/functions";
import { matchedFunctions, searchTree } from "../src/flame/search";
import {
  applyTransforms,
  flip,
  focusFunction,
  hideFunction,
  type Transform,
} from "../src/flame/transforms";
import { packageOf } from "../src/flame/names";
import { checkTree, randomTree, stacksOf, treeOfStacks } from "./flame-fixtures";
import shared from "./transforms.txt";

const RECURSIVE = { "main;f;g;f;h": 4, "main;f;f": 2, "main;g": 1, "f;x": 3 };

// tests/unit/model/test_stack_transforms.c reads the same file.
test("transforms and packages are those of the shared cases", () => {
  let cases = 0;
  for (const block of shared.split("\n\n")) {
    const lines = block.split("\n").filter((line) => !line.startsWith("#"));
    const named = lines.filter((line) => line.startsWith("package ")).map((line) => line.slice("package ".length).split(" -> "));
    named.forEach(([name, wanted]) => assert.equal(packageOf(name!), wanted, name));
    cases += named.length;
    if (lines[0] !== "stacks") continue;

    const read = (from: number, to: number) =>
      Object.fromEntries(lines.slice(from, to).filter((line) => line !== "").map((line) => {
        const at = line.lastIndexOf(" ");
        return [line.slice(0, at), Number(line.slice(at + 1))];
      }));
    const first = lines.findIndex((line) => line.startsWith("then "));
    const gives = lines.indexOf("gives");
    const transforms = lines.slice(first, gives).map((line) => {
      const [, kind = "", name = ""] = /^then (\w+) (.*)$/.exec(line)!;
      return { kind: kind === "package" ? "module" : kind, name } as Transform;
    });
    const result = applyTransforms(treeOfStacks(read(1, first)), transforms);
    assert.deepEqual(stacksOf(result), read(gives + 1, lines.length), block);
    cases++;
  }
  assert.ok(cases > 40);
});

test("flip shows callers below the leaves", () => {
  assert.deepEqual(stacksOf(flip(treeOfStacks({ "a;b;c": 1, "b;c": 2, a: 4 }))), { "c;b;a": 1, "c;b": 2, a: 4 });
  assert.deepEqual(stacksOf(flip(flip(treeOfStacks(RECURSIVE)))), stacksOf(treeOfStacks(RECURSIVE)));
});

test("every transform makes a sound tree, of the same total unless it selects, and leaves its input alone", () => {
  for (let seed = 1; seed <= 10; seed++) {
    const tree = flip(flip(randomTree(seed, 2000, 20)));
    const before = JSON.stringify(stacksOf(tree));
    for (const kind of ["focus", "hide", "recursion", "module"] as const) {
      for (const isFlipped of [false, true]) {
        const name = kind === "module" ? "pkg3" : "pkg3.function3";
        const upright = applyTransforms(tree, [{ kind, name }]);
        const result = isFlipped ? flip(upright) : upright;
        checkTree(result);
        if (kind !== "focus") assert.equal(result.total[0], tree.total[0]);
      }
    }
    assert.equal(JSON.stringify(stacksOf(tree)), before);
  }
});

test("transforms keep both sides of a diff", () => {
  const tree = treeOfStacks({ "a;b": [1, 2], "a;c": [3, 0], b: [0, 7] });
  for (const result of [hideFunction(tree, "a"), flip(tree)]) {
    assert.deepEqual([result.diff!.leftTotal[0], result.diff!.rightTotal[0]], [4, 9]);
    assert.deepEqual([result.diff!.leftTicks, result.diff!.rightTicks], [4, 9]);
  }
});

test("a function's total counts each sample once", () => {
  const rows = functionsOf(treeOfStacks(RECURSIVE));
  const f = rows.find((row) => row.name === "f")!;
  assert.deepEqual([f.self, f.total, f.frames], [2, 9, 4]);
  assert.deepEqual(
    rows.map((row) => row.name),
    ["h", "x", "f", "g", "main"],
  );
  const tree = randomTree(9, 3000, 15);
  const functions = functionsOf(tree);
  assert.equal(functions.reduce((sum, row) => sum + row.self, 0) + tree.self[0]!, tree.total[0]);
  for (const row of functions) {
    assert.equal(row.total, focusFunction(tree, row.name).total[0]);
    assert.equal(row.total, searchTree(tree, `^${row.name}$`)!.total);
  }
});

test("matching functions are listed by their totals, each with its largest frame", () => {
  const tree = treeOfStacks(RECURSIVE);
  const rows = matchedFunctions(tree, searchTree(tree, "f|g|x")!);
  assert.deepEqual(rows.map(({ name, total, frames, largest }) => [name, total, frames, tree.total[largest]]), [["f", 9, 4, 6], ["g", 5, 2, 4], ["x", 3, 1, 3]]);
  assert.deepEqual(matchedFunctions(tree, searchTree(tree, "nothing")!), []);
});

test("search counts nested matches once, and takes what is no pattern as text", () => {
  const tree = treeOfStacks(RECURSIVE);
  const matches = searchTree(tree, "f|g")!;
  assert.deepEqual([matches.total, matches.frames, matches.functions, matches.isLiteral], [10, 6, 2, false]);
  const literal = searchTree(treeOfStacks({ "a(*T).b": 1 }), "(*T")!;
  assert.deepEqual([literal.total, literal.isLiteral], [1, true]);
  assert.equal(searchTree(tree, "MAIN")!.total, 0);
  assert.equal(searchTree(treeOfStacks({ Main: 1 }), "main")!.total, 1);
  assert.equal(searchTree(tree, ""), null);
});
