import assert from "node:assert/strict";
import { test } from "node:test";
import { css, LIGHT } from "../src/flame/colours";
import { boxAt, boxOf, CULLED, layoutTree } from "../src/flame/layout";
import { moveCursor } from "../src/flame/navigate";
import { paint } from "../src/flame/paint";
import { drawnWidth, Scene } from "../src/flame/scene";
import { searchTree } from "../src/flame/search";
import { largestFirst } from "../src/flame/tree";
import { zoomStart } from "../src/flame/zoom";
import { generator, randomTree, treeOfStacks } from "./flame-fixtures";

test("drawn and culled are the total, below every drawn box", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const plain = randomTree(seed, 3000, 50);
    const tree = seed % 2 ? plain : largestFirst(plain);
    const random = generator(seed);
    for (const width of [1, 300, 1600]) {
      const zoom = Math.floor(random() * tree.n);
      const layout = layoutTree(tree, zoom, width);
      const sums = new Float64Array(tree.n);
      for (let box = layout.rowStart[layout.zoomRow + 1]!; box < layout.n; box++) {
        sums[layout.parent[box]!]! += layout.sum[box]!;
      }
      for (let box = layout.rowStart[layout.zoomRow]!; box < layout.n; box++) {
        const node = layout.node[box]!;
        if (node !== CULLED) assert.equal(sums[node]! + tree.self[node]!, tree.total[node]);
      }
    }
  }
});

test("boxes of a row are in order, do not overlap, and are found under the pointer", () => {
  const tree = randomTree(5, 20000, 200);
  const layout = layoutTree(tree, 0, 1600);
  for (let row = 0; row < layout.rows; row++) {
    for (let box = layout.rowStart[row]!; box < layout.rowStart[row + 1]!; box++) {
      if (box + 1 < layout.rowStart[row + 1]!) {
        assert.ok(layout.x[box]! + layout.width[box]! <= layout.x[box + 1]! + 1e-6);
      }
      if (layout.width[box]! > 0.01) assert.equal(boxAt(layout, layout.x[box]! + layout.width[box]! / 2, row), box);
      const node = layout.node[box]!;
      if (node !== CULLED) {
        assert.equal(tree.depth[node], row);
        assert.equal(boxOf(layout, tree, node), box);
      }
    }
  }
  assert.equal(boxAt(layout, 10, layout.rows), -1);
  assert.equal(boxAt(layout, 10, -1), -1);
  assert.equal(boxAt(layout, 1700, 0), -1);
});

test("a tree without samples has a root", () => {
  const layout = layoutTree(treeOfStacks({}), 0, 800);
  assert.deepEqual([layout.n, layout.rows, layout.width[0]], [1, 1, 800]);
});

test("keys walk the drawn boxes", () => {
  const tree = treeOfStacks({ "a;b": 5, "a;c": 3, "d;e": 2 });
  const layout = layoutTree(tree, 0, 1000);
  const named = (name: string) => [...tree.name].findIndex((i) => tree.names[i] === name);
  const go = (from: string, key: string) => tree.names[tree.name[moveCursor(layout, tree, null, named(from), key)!]!];
  assert.equal(go("a", "ArrowDown"), "b");
  assert.equal(go("b", "ArrowRight"), "c");
  assert.equal(go("c", "ArrowRight"), "e");
  assert.equal(go("e", "ArrowLeft"), "c");
  assert.equal(go("e", "ArrowRight"), "e");
  assert.equal(go("b", "ArrowUp"), "a");
  assert.equal(go("b", "Home"), "total");
  assert.equal(moveCursor(layout, tree, null, 1, "x"), null);
  const matches = searchTree(tree, "^[ce]$");
  assert.equal(moveCursor(layout, tree, matches, named("c"), "n"), named("e"));
  assert.equal(moveCursor(layout, tree, matches, named("c"), "N"), named("e"));
});

test("a zoom begins where the box was", () => {
  const tree = treeOfStacks({ a: 25, "b;c": 75 });
  const whole = layoutTree(tree, 0, 1000);
  const inside = layoutTree(tree, 2, 1000);
  assert.deepEqual(zoomStart(whole, inside, tree), { scale: 0.75, offset: 250 });
  const back = zoomStart(inside, whole, tree)!;
  assert.ok(Math.abs(250 * back.scale + back.offset) < 1e-9);
  assert.equal(zoomStart(whole, whole, tree), null);
});

test("every box is painted once, at its place and in its colour", () => {
  const tree = randomTree(7, 5000, 300);
  for (const zoom of [0, 3]) {
    const layout = layoutTree(tree, zoom, 1600);
    const scene = new Scene(tree, layout, LIGHT, "package", "count", null, "total");
    const painted: string[] = [];
    const context = {
      fillStyle: "",
      measureText: () => ({ width: 720 }),
      setTransform() {},
      fillText() {},
      fillRect(x: number, y: number, width: number) {
        painted.push([this.fillStyle, x, y, width].join(" "));
      },
    };
    const frame = { width: 1600, height: 20 * layout.rows, top: 0, rowHeight: 20, ratio: 1, scale: 1, offset: 0 };
    paint(context as unknown as CanvasRenderingContext2D, scene, { ...frame, outlinedName: -1, cursor: -1 });
    const wanted: string[] = [];
    for (let row = 0; row < layout.rows; row++) {
      for (let box = layout.rowStart[row]!; box < layout.rowStart[row + 1]!; box++) {
        const x = Math.round(layout.x[box]!);
        const width = Math.round(layout.x[box]! + layout.width[box]!) - x;
        if (width > 0) wanted.push([css(scene.fill(box)), x, 20 * row, drawnWidth(width)].join(" "));
      }
    }
    assert.ok(wanted.length > 500, String(wanted.length));
    const [background, ...boxes] = painted;
    assert.equal(background, [css(LIGHT.background), 0, 0, 1600].join(" "));
    assert.deepEqual(boxes.sort(), wanted.sort());
  }
});
