// The merged call tree as a structure of arrays: no object per node, so that a million nodes cost what their numbers cost.
//
// Invariants: node 0 is the root; a parent stands before its children; siblings have different names. `total` of a node
// is its `self` and the totals of its children. In a diff, total and self are the sums of both sides.
import { frameId, UNKNOWN } from "./names";
import { readNoise, type Noise } from "./noise";
import { Reader } from "./protobuf";

export interface FlameDiff {
  leftTotal: Float64Array;
  rightTotal: Float64Array;
  leftSelf: Float64Array;
  rightSelf: Float64Array;
  leftTicks: number;
  rightTicks: number;
  /** Of the nodes as the server sent them: a tree that was transformed has none. */
  noise?: Noise;
}

export interface FlameTree {
  names: string[];
  n: number;
  name: Uint32Array;
  parent: Int32Array;
  depth: Uint16Array;
  total: Float64Array;
  self: Float64Array;
  firstChild: Int32Array;
  nextSibling: Int32Array;
  maxDepth: number;
  /** Callers stand below callees: a node's self is then that of stack traces which begin there, and nothing to show. */
  isInverted?: boolean;
  /** Siblings are linked from the largest on; otherwise in the order of their numbers. */
  isLargestFirst?: boolean;
  diff?: FlameDiff;
}

export interface Decoded {
  tree: FlameTree;
  unit: string;
  aggregation: number;
  isCut: boolean;
}

/** The server's name for what it summed to keep an answer small. */
export const OTHER = "other";

export interface Graph {
  names: string[];
  levels: Float64Array[];
  leftTicks: number;
  rightTicks: number;
}

function readLevel(level: Reader): Float64Array {
  // A value takes a byte at least, so that there is room for whatever the fields hold.
  const values = new Float64Array(level.rest);
  let n = 0;
  while (!level.isDone) {
    const { field, wire } = level.tag();
    if (field === 1 && wire === 2) {
      const list = level.message();
      n += list.varints(values.subarray(n));
    } else if (field === 1 && wire === 0) {
      values[n++] = level.varint();
    } else {
      level.skip(wire);
    }
  }
  return values.subarray(0, n);
}

/** FlameGraph and FlameGraphDiff of querier.v1. */
function readGraph(message: Reader): Graph {
  const decoder = new TextDecoder();
  const graph: Graph = { names: [], levels: [], leftTicks: 0, rightTicks: 0 };
  while (!message.isDone) {
    const { field, wire } = message.tag();
    if (field === 1 && wire === 2) {
      graph.names.push(message.text(decoder) || UNKNOWN);
    } else if (field === 2 && wire === 2) {
      graph.levels.push(readLevel(message.message()));
    } else if (field === 5 && wire === 0) {
      graph.leftTicks = message.varint();
    } else if (field === 6 && wire === 0) {
      graph.rightTicks = message.varint();
    } else {
      message.skip(wire);
    }
  }
  return graph;
}

/** Where the boxes of one side are, and their values. */
interface Side {
  from: Float64Array;
  total: Float64Array;
  self: Float64Array;
}

function spans({ from, total }: Side, outer: number, inner: number): boolean {
  return from[outer]! <= from[inner]! && from[inner]! + total[inner]! <= from[outer]! + total[outer]!;
}

/** Takes three numbers of a level, the distance from `end` first; returns where the box ends. */
function placeBox(side: Side, node: number, level: Float64Array, at: number, end: number): number {
  const from = end + level[at]!;
  const total = level[at + 1]!;
  side.from[node] = from;
  side.total[node] = total;
  side.self[node] = level[at + 2]!;
  return from + total;
}

/** Boxes say where they are, not whose children they are: a parent is the box above that spans its child on every side. */
export function treeOf(graph: Graph, sides: 1 | 2): FlameTree {
  const stride = 3 * sides + 1;
  const n = Math.max(
    1,
    graph.levels.reduce((sum, level) => sum + Math.floor(level.length / stride), 0),
  );
  const tree = emptyTree(graph.names.length > 0 ? graph.names : ["total"], n);
  const newSide = (): Side => ({ from: new Float64Array(n), total: new Float64Array(n), self: new Float64Array(n) });
  const left = sides === 1 ? { from: new Float64Array(n), total: tree.total, self: tree.self } : newSide();
  const right = sides === 1 ? left : newSide();

  let node = 0;
  let above = 0;
  graph.levels.forEach((level, depth) => {
    const begin = node;
    let [leftEnd, rightEnd] = [0, 0];
    let parent = above;
    for (let v = 0; v + stride <= level.length; v += stride, node++) {
      leftEnd = placeBox(left, node, level, v, leftEnd);
      if (sides === 2) {
        rightEnd = placeBox(right, node, level, v + 3, rightEnd);
      }
      const name = level[v + stride - 1]!;
      if (!(name >= 0 && name < tree.names.length) || depth > 0xffff || (depth === 0 && node > 0)) {
        throw new Error("the server sent a malformed flame graph");
      }
      tree.name[node] = name;
      tree.depth[node] = depth;
      if (depth === 0) {
        continue;
      }
      while (parent < begin && !(spans(left, parent, node) && (sides === 1 || spans(right, parent, node)))) {
        parent++;
      }
      if (parent === begin) {
        throw new Error("the server sent a malformed flame graph");
      }
      tree.parent[node] = parent;
    }
    above = begin;
    tree.maxDepth = Math.max(tree.maxDepth, depth);
  });

  if (sides === 2) {
    for (let i = 0; i < n; i++) {
      tree.total[i] = left.total[i]! + right.total[i]!;
      tree.self[i] = left.self[i]! + right.self[i]!;
    }
    tree.diff = {
      leftTotal: left.total,
      rightTotal: right.total,
      leftSelf: left.self,
      rightSelf: right.self,
      leftTicks: graph.leftTicks,
      rightTicks: graph.rightTicks,
    };
  }
  linkChildren(tree);
  return tree;
}

function decode(bytes: Uint8Array, sides: 1 | 2): Decoded {
  const fields = sides === 1 ? { aggregation: 6, unit: 7 } : { aggregation: 2, unit: 3 };
  const message = new Reader(bytes);
  let graph: Graph = { names: [], levels: [], leftTicks: 0, rightTicks: 0 };
  let aggregation = 0;
  let unit = "";
  let noise: Reader | undefined;
  while (!message.isDone) {
    const { field, wire } = message.tag();
    if (field === 1 && wire === 2) {
      graph = readGraph(message.message());
    } else if (field === fields.aggregation && wire === 0) {
      aggregation = message.varint();
    } else if (field === fields.unit && wire === 2) {
      unit = message.text(new TextDecoder());
    } else if (sides === 2 && field === 4 && wire === 2) {
      noise = message.message();
    } else {
      message.skip(wire);
    }
  }
  const tree = treeOf(graph, sides);
  if (tree.diff && noise) {
    tree.diff.noise = readNoise(noise, tree.n);
  }
  return { tree, unit, aggregation, isCut: tree.names.includes(OTHER) };
}

/** hearth.v1.MergeResponse, format FLAMEGRAPH. */
export function decodeMerge(bytes: Uint8Array): Decoded {
  return decode(bytes, 1);
}

/** hearth.v1.DiffResponse. */
export function decodeDiff(bytes: Uint8Array): Decoded {
  return decode(bytes, 2);
}

export function emptyTree(names: string[], n: number): FlameTree {
  return {
    names,
    n,
    maxDepth: 0,
    name: new Uint32Array(n),
    parent: new Int32Array(n).fill(-1),
    depth: new Uint16Array(n),
    total: new Float64Array(n),
    self: new Float64Array(n),
    firstChild: new Int32Array(n).fill(-1),
    nextSibling: new Int32Array(n).fill(-1),
  };
}

/** Links every node to its siblings in the order of their numbers. */
export function linkChildren(tree: FlameTree): void {
  tree.firstChild.fill(-1);
  tree.nextSibling.fill(-1);
  for (let i = tree.n - 1; i > 0; i--) {
    const parent = tree.parent[i]!;
    tree.nextSibling[i] = tree.firstChild[parent]!;
    tree.firstChild[parent] = i;
  }
}

/** The same nodes with the largest child first, as a single picture is read. Comparisons keep the order of names. */
export function largestFirst(tree: FlameTree): FlameTree {
  if (tree.isLargestFirst) {
    return tree;
  }
  const { total } = tree;
  const firstChild = tree.firstChild.slice();
  const nextSibling = tree.nextSibling.slice();
  let family = new Int32Array(64);
  for (let parent = 0; parent < tree.n; parent++) {
    const first = firstChild[parent]!;
    if (first < 0 || nextSibling[first]! < 0) {
      continue;
    }
    let n = 0;
    for (let child = first; child >= 0; child = tree.nextSibling[child]!) {
      if (n === family.length) {
        const larger = new Int32Array(2 * n);
        larger.set(family);
        family = larger;
      }
      family[n++] = child;
    }
    const children = family.subarray(0, n);
    if (n > 16) {
      children.sort((a, b) => total[b]! - total[a]! || a - b);
    } else {
      sortFew(children, total);
    }
    firstChild[parent] = children[0]!;
    for (let i = 0; i < n; i++) {
      nextSibling[children[i]!] = i + 1 < n ? children[i + 1]! : -1;
    }
  }
  return { ...tree, firstChild, nextSibling, isLargestFirst: true };
}

/** The same nodes with siblings in the order of their numbers, which is that of their names. */
export function inOrder(tree: FlameTree): FlameTree {
  if (!tree.isLargestFirst) {
    return tree;
  }
  const { n } = tree;
  const ordered = { ...tree, firstChild: new Int32Array(n), nextSibling: new Int32Array(n), isLargestFirst: false };
  linkChildren(ordered);
  return ordered;
}

/** By insertion, which is quick for few; equal ones keep their order. */
function sortFew(nodes: Int32Array, total: Float64Array): void {
  for (let i = 1; i < nodes.length; i++) {
    const node = nodes[i]!;
    let at = i;
    for (; at > 0 && total[nodes[at - 1]!]! < total[node]!; at--) {
      nodes[at] = nodes[at - 1]!;
    }
    nodes[at] = node;
  }
}

/** The node's stable ids from below the root. */
export function pathOf(tree: FlameTree, node: number): string[] {
  const ids: string[] = [];
  for (let i = node; i > 0; i = tree.parent[i]!) {
    ids.push(frameId(tree.names[tree.name[i]!]!));
  }
  return ids.reverse();
}

/** The node at a path of stable ids, or the last one on the way that exists: data of another hour may lack the rest. */
export function nodeAt(tree: FlameTree, path: readonly string[]): number {
  let node = 0;
  for (const id of path) {
    let child = tree.firstChild[node]!;
    while (child >= 0 && frameId(tree.names[tree.name[child]!]!) !== id) {
      child = tree.nextSibling[child]!;
    }
    if (child < 0) {
      break;
    }
    node = child;
  }
  return node;
}

/** The nodes from the root to `node`, both included. */
export function ancestorsOf(tree: FlameTree, node: number): number[] {
  const path: number[] = [];
  for (let i = node; i >= 0; i = tree.parent[i]!) {
    path.push(i);
  }
  return path.reverse();
}

export function nameOf(tree: FlameTree, node: number): string {
  return tree.names[tree.name[node]!]!;
}
