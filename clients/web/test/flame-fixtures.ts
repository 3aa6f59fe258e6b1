// Trees and answers for tests: from stacks, or random from a seed.
import { TreeBuilder } from "../src/flame/build";
import { Writer } from "../src/flame/protobuf";
import { emptyTree, linkChildren, type FlameTree } from "../src/flame/tree";

/** mulberry32: the same numbers from the same seed. */
export function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** "a;b;c": value. With pairs a diff, [left, right]. */
export function treeOfStacks(stacks: Record<string, number | [number, number]>): FlameTree {
  const names = ["total"];
  const index = (name: string) => (names.includes(name) ? names.indexOf(name) : names.push(name) - 1);
  const paths = Object.entries(stacks).map(([stack, value]) => ({ frames: stack.split(";").map(index), value }));
  const source = emptyTree(names, paths.length);
  const isDiff = paths.some(({ value }) => Array.isArray(value));
  const left = paths.map(({ value }) => (Array.isArray(value) ? value[0] : 0));
  const right = paths.map(({ value }) => (Array.isArray(value) ? value[1] : 0));
  if (isDiff) {
    source.diff = {
      leftSelf: Float64Array.from(left),
      rightSelf: Float64Array.from(right),
      leftTotal: new Float64Array(0),
      rightTotal: new Float64Array(0),
      leftTicks: left.reduce((a, b) => a + b, 0),
      rightTicks: right.reduce((a, b) => a + b, 0),
    };
  }
  const builder = new TreeBuilder(names);
  const ends = paths.map(({ frames }) => frames.reduce((parent, name) => builder.child(parent, name), 0));
  paths.forEach(({ value }, i) => {
    source.self[i] = Array.isArray(value) ? value[0] + value[1] : value;
  });
  return builder.finish(source, (move) => ends.forEach((end, i) => move(i, end)));
}

/** A tree of n nodes with heavy-tailed weights, at most 200 deep. */
export function randomTree(seed: number, n: number, distinct: number): FlameTree {
  const random = generator(seed);
  const tree = emptyTree(["total", ...Array.from({ length: distinct }, (_, i) => `pkg${i % 37}.function${i}`)], n);
  for (let i = 1; i < n; i++) {
    let parent = Math.floor(random() ** 0.5 * i);
    while (tree.depth[parent]! >= 200) parent = tree.parent[parent]!;
    tree.parent[i] = parent;
    tree.name[i] = 1 + Math.floor(random() * distinct);
    tree.depth[i] = tree.depth[parent]! + 1;
    tree.maxDepth = Math.max(tree.maxDepth, tree.depth[i]!);
    tree.self[i] = Math.floor(1 / (random() + 1e-6));
  }
  tree.total.set(tree.self);
  for (let i = n - 1; i > 0; i--) tree.total[tree.parent[i]!]! += tree.total[i]!;
  linkChildren(tree);
  return tree;
}

/** Stacks and self values, to compare trees whatever their order. */
export function stacksOf(tree: FlameTree): Record<string, number> {
  const result: Record<string, number> = {};
  for (let i = 0; i < tree.n; i++) {
    if (tree.self[i] === 0) continue;
    const frames: string[] = [];
    for (let f = i; f > 0; f = tree.parent[f]!) frames.unshift(tree.names[tree.name[f]!]!);
    result[frames.join(";")] = (result[frames.join(";")] ?? 0) + tree.self[i]!;
  }
  return result;
}

/** Throws unless totals, depths and links agree with selfs and parents. */
export function checkTree(tree: FlameTree): void {
  const sums = tree.self.slice();
  let linked = 0;
  for (let i = tree.n - 1; i > 0; i--) {
    if (!(tree.parent[i]! < i)) throw new Error("a parent stands behind its child");
    if (tree.depth[i] !== tree.depth[tree.parent[i]!]! + 1) throw new Error("wrong depth");
    sums[tree.parent[i]!]! += sums[i]!;
  }
  for (let i = 0; i < tree.n; i++) {
    if (Math.abs(sums[i]! - tree.total[i]!) > 1e-6 * Math.abs(sums[i]!)) throw new Error(`wrong total of ${i}`);
    for (let child = tree.firstChild[i]!; child >= 0; child = tree.nextSibling[child]!) {
      if (tree.parent[child] !== i) throw new Error("a child of another parent");
      linked++;
    }
  }
  if (linked !== tree.n - 1) throw new Error("nodes without links");
}

export const HOSTILE = [
  "<script>alert(1)</script>",
  `"><img src=x onerror=alert(1)>`,
  "]]></title><svg onload=alert(1)>",
  "javascript:alert(1)",
  "&lt;b&gt;",
  "a\u202egnp.exe",
  "\u2066ab\u2069",
  "zero\u200bwidth\u200d",
  "\ufeffbom",
  "\u0000nul",
  "esc\u001b[31mred",
  "line\nbreak\r\n\t",
  "\u0085\u009b",
  "مرحبا.دالة",
  "שלום::עולם",
  "\ud800lone",
  "\u{e0041}tag",
  "x".repeat(10240),
  "<".repeat(10240),
  "a;b;c 5",
  "${7*7}",
  "`${x}`",
  "__proto__",
  "constructor",
  "toString",
  "</style>",
  "--><!--",
  "函数.方法",
  "👩‍👩‍👧",
  "",
  " ",
  "[unknown]",
  "other",
];

/** The hearth.v1.MergeResponse that the server would send for the tree. */
export function answerOf(tree: FlameTree): Uint8Array {
  const graph = new Writer();
  const text = new TextEncoder();
  tree.names.forEach((name) => graph.field(1, text.encode(name)));
  const x = new Float64Array(tree.n);
  for (let row = [0]; row.length > 0;) {
    const values = new Writer();
    const below: number[] = [];
    let end = 0;
    for (const node of row) {
      values.varint(x[node]! - end);
      values.varint(tree.total[node]!);
      values.varint(tree.self[node]!);
      values.varint(tree.name[node]!);
      end = x[node]! + tree.total[node]!;
      let childX = x[node]!;
      for (let child = tree.firstChild[node]!; child >= 0; child = tree.nextSibling[child]!) {
        x[child] = childX;
        childX += tree.total[child]!;
        below.push(child);
      }
    }
    const level = new Writer();
    level.field(1, values);
    graph.field(2, level);
    row = below;
  }
  const answer = new Writer();
  answer.field(1, graph);
  answer.field(7, text.encode("nanoseconds"));
  return answer.done();
}
