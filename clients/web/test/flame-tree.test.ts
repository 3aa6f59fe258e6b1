import assert from "node:assert/strict";
import { test } from "node:test";
import { changedFrames, isChanged } from "../src/flame/diff";
import { decodeDiff, decodeMerge, inOrder, largestFirst, nameOf, nodeAt, pathOf } from "../src/flame/tree";
import { checkTree, generator, HOSTILE, randomTree, stacksOf, treeOfStacks } from "./flame-fixtures";

// ---- an encoder of what the server sends ----

function varint(value: number): number[] {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return bytes;
}
const field = (number: number, bytes: number[]) => [...varint(8 * number + 2), ...varint(bytes.length), ...bytes];
const text = (number: number, value: string) => field(number, [...new TextEncoder().encode(value)]);
const level = (values: number[]) => field(2, field(1, values.flatMap(varint)));

test("boxes of a merge become a tree", () => {
  const graph = [
    ...["total", "main", "a", "b"].flatMap((name) => text(1, name)),
    ...level([0, 10, 0, 0]),
    ...level([0, 7, 1, 1, 1, 2, 2, 2]),
    ...level([1, 6, 6, 2, 1, 1, 1, 3]),
    ...varint(8 * 3),
    ...varint(10),
  ];
  const { tree, unit, aggregation, isCut } = decodeMerge(
    Uint8Array.from([...field(1, graph), ...varint(8 * 6), 2, ...text(7, "bytes")]),
  );
  assert.deepEqual([unit, aggregation, isCut], ["bytes", 2, false]);
  assert.deepEqual([...tree.parent], [-1, 0, 0, 1, 2]);
  assert.deepEqual([...tree.total], [10, 7, 2, 6, 1]);
  assert.equal(tree.maxDepth, 2);
});

test("boxes of a diff find the parent that spans them on both sides", () => {
  const graph = [
    ...["total", "a", "b", "c"].flatMap((name) => text(1, name)),
    ...level([0, 5, 0, 0, 7, 0, 0]),
    ...level([0, 5, 5, 0, 3, 3, 1, 0, 0, 0, 0, 4, 0, 2]),
    ...level([5, 0, 0, 3, 4, 4, 3]),
    ...varint(8 * 5),
    5,
    ...varint(8 * 6),
    7,
  ];
  const { tree } = decodeDiff(Uint8Array.from([...field(1, graph), ...text(3, "count")]));
  assert.deepEqual([...tree.parent], [-1, 0, 0, 2]);
  assert.deepEqual([...tree.diff!.rightTotal], [7, 3, 4, 4]);
  assert.deepEqual([...tree.total], [12, 8, 4, 4]);
});

test("the judgement of a diff says which changes are seen", () => {
  const bytes = (values: number[], size: 4 | 8) => {
    const view = new DataView(new ArrayBuffer(size * values.length));
    values.forEach((value, i) => (size === 4 ? view.setFloat32(4 * i, value, true) : view.setFloat64(8 * i, value, true)));
    return [...new Uint8Array(view.buffer)];
  };
  const double = (number: number, value: number) => [...varint(8 * number + 1), ...bytes([value], 8)];
  const number = (field: number, value: number) => [...varint(8 * field), ...varint(value)];
  const judged = (low: number[], high: number[], q: number[]) =>
    field(13, [low, high, q].flatMap((column, i) => field(i + 1, bytes(column, 4))));
  const graph = [
    ...["total", "a", "b"].flatMap((name) => text(1, name)),
    ...level([0, 1000, 0, 0, 1000, 0, 0]),
    ...level([0, 500, 500, 0, 600, 600, 1, 0, 500, 500, 0, 400, 400, 2]),
    ...number(5, 1000),
    ...number(6, 1000),
  ];
  const noise = (n: number) => [
    ...number(1, 1),
    ...text(2, "because"),
    ...[3, 4, 5, 6, 7, 8, 9, 10, 11, 12].flatMap((each) => number(each, each)),
    ...judged([0], [0], [1]),
    ...judged([0.05, -0.3], [0.15, 0.1], [0.01, 0.2].slice(0, n)),
    ...field(14, [...text(1, "a"), ...number(2, 500), ...number(3, 600), ...[0.1, 0.05, 0.15, 0.01].flatMap((v, i) => double(4 + i, v))]),
    ...field(15, [10, 11, -1, 3, 0.4].flatMap((v, i) => double(1 + i, v))),
  ];
  const { tree } = decodeDiff(Uint8Array.from([...field(1, graph), ...field(4, noise(2))]));
  const { low, high, q, functions, rate, ...rest } = tree.diff!.noise!;
  assert.deepEqual(rest, {
    method: "parts",
    reason: "because",
    sliceSeconds: [3, 4],
    slices: [5, 6],
    series: [7, 8],
    judgedNodes: 9,
    changedNodes: 10,
    judgedFunctions: 11,
    changedFunctions: 12,
  });
  assert.deepEqual([low.length, high.length, q[0]], [3, 3, 1]);
  assert.deepEqual(functions, [{ name: "a", leftSelf: 500, rightSelf: 600, change: 0.1, low: 0.05, high: 0.15, q: 0.01 }]);
  assert.deepEqual(rate, { left: 10, right: 11, low: -1, high: 3, p: 0.4 });

  // Both frames changed by ten points; only the first is beyond noise. Without a judgement, both are seen.
  assert.deepEqual([0, 1, 2].map((node) => isChanged(tree, node)), [false, true, false]);
  assert.deepEqual(changedFrames(tree), [1]);
  const { tree: unjudged } = decodeDiff(Uint8Array.from(field(1, graph)));
  assert.deepEqual([0, 1, 2].map((node) => isChanged(unjudged, node)), [false, true, true]);
  assert.deepEqual(changedFrames(unjudged), []);
  assert.throws(() => decodeDiff(Uint8Array.from([...field(1, graph), ...field(4, noise(1))])), /judged other frames/);
});

test("an empty answer, and large and negative numbers", () => {
  assert.equal(decodeMerge(new Uint8Array()).tree.n, 1);
  for (const value of [2 ** 53 - 1, 2 ** 32, 2 ** 31, 2 ** 28, -5]) {
    const graph = [...text(1, "total"), ...level([0, value, 0, 0])];
    assert.equal(decodeMerge(Uint8Array.from(field(1, graph))).tree.total[0], value);
  }
});

test("malformed answers are errors, and end", () => {
  const graph = [...text(1, "total"), ...level([0, 10, 0, 0]), ...level([0, 11, 0, 0])];
  assert.throws(() => decodeMerge(Uint8Array.from(field(1, graph))), /malformed/);
  assert.throws(
    () => decodeMerge(Uint8Array.from(field(1, [...text(1, "total"), ...level([0, 1, 0, 9])]))),
    /malformed/,
  );
  const random = generator(7);
  for (let round = 0; round < 2000; round++) {
    const bytes = Uint8Array.from({ length: 40 }, () => Math.floor(random() * 256));
    bytes[0] = 10;
    try {
      checkTree(decodeMerge(bytes).tree);
    } catch (error) {
      assert.ok(error instanceof Error);
    }
  }
});

test("hostile names arrive as they are", () => {
  const graph = [...text(1, "total"), ...HOSTILE.flatMap((name) => text(1, name)), ...level([0, 1, 1, 0])];
  const { tree } = decodeMerge(Uint8Array.from(field(1, graph)));
  assert.equal(tree.names[1], HOSTILE[0]);
  assert.equal(tree.names.length, HOSTILE.length + 1);
});

test("paths of stable ids lead back to their nodes, and to the last known ancestor otherwise", () => {
  const tree = treeOfStacks({ "a;b;c": 1, "a;c": 2, b: 3 });
  for (let i = 0; i < tree.n; i++) assert.equal(nodeAt(tree, pathOf(tree, i)), i);
  const path = pathOf(tree, 1);
  assert.equal(nodeAt(tree, [...path, "nothing", "there"]), 1);
});

test("the largest child comes first and nothing is lost", () => {
  const tree = largestFirst(randomTree(3, 5000, 100));
  checkTree(tree);
  for (let i = 0; i < tree.n; i++) {
    for (let c = tree.firstChild[i]!; c >= 0 && tree.nextSibling[c]! >= 0; c = tree.nextSibling[c]!) {
      assert.ok(tree.total[c]! >= tree.total[tree.nextSibling[c]!]!);
    }
  }
  assert.deepEqual(stacksOf(treeOfStacks({ "a;b": 2 })), { "a;b": 2 });
  const plain = randomTree(3, 5000, 100);
  assert.deepEqual(inOrder(largestFirst(plain)).nextSibling, plain.nextSibling);
});

const NO_NOISE = {
  reason: "",
  sliceSeconds: [60, 60] as [number, number],
  slices: [10, 10] as [number, number],
  series: [0, 0] as [number, number],
  judgedNodes: 0,
  changedNodes: 0,
  judgedFunctions: 0,
  changedFunctions: 0,
  functions: [],
};

test("a frame whose change is that of one frame below it is left out for that one", () => {
  const tree = treeOfStacks({ "main;send;write": [10, 200], "main;send": [10, 12], "main;idle": [480, 288], "gc;send;write": [0, 20] });
  const q = new Float32Array(tree.n).fill(0.01);
  q[0] = 1;
  tree.diff!.noise = { ...NO_NOISE, method: "parts", q, low: q, high: q };
  // All below gc is write again, which stands for both places; the change of main is small beside that of idle.
  assert.deepEqual(changedFrames(tree).map((node) => nameOf(tree, node)), ["idle", "write"]);
});
