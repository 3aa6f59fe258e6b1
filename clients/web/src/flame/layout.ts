// Where boxes are. Only what is at least half a pixel wide is visited below its parent, so the work is bounded by the
// picture's width times its depth and not by the number of nodes.
import type { FlameTree } from "./tree";

const CULL_WIDTH = 0.5;

/** A run of neighbours that are too narrow to draw: one grey bar with their sum. */
export const CULLED = -1;

export interface Layout {
  /** Boxes sorted by row, then by x; `node` is CULLED for a run. */
  n: number;
  node: Int32Array;
  x: Float64Array;
  width: Float64Array;
  /** What the box stands for, in the tree's unit. */
  sum: Float64Array;
  /** Nodes of a run, without their descendants. */
  count: Uint32Array;
  /** For a run: the parent of its nodes. */
  parent: Int32Array;
  /** Boxes of row r are rowStart[r] up to rowStart[r + 1]. */
  rowStart: Uint32Array;
  rows: number;
  /** Rows above this one are ancestors of the zoomed node. */
  zoomRow: number;
  zoomNode: number;
}

class Boxes {
  n = 0;
  node = new Int32Array(8192);
  x = new Float64Array(8192);
  width = new Float64Array(8192);
  sum = new Float64Array(8192);
  count = new Uint32Array(8192);
  parent = new Int32Array(8192);
  row = new Uint16Array(8192);

  push(node: number, row: number, x: number, width: number, sum: number, count: number, parent: number): void {
    if (this.n === this.node.length) {
      this.grow();
    }
    const i = this.n++;
    this.node[i] = node;
    this.row[i] = row;
    this.x[i] = x;
    this.width[i] = width;
    this.sum[i] = sum;
    this.count[i] = count;
    this.parent[i] = parent;
  }

  private grow(): void {
    const size = 2 * this.n;
    const copy = <T extends { set(from: T): void }>(to: T, from: T): T => (to.set(from), to);
    this.node = copy(new Int32Array(size), this.node);
    this.x = copy(new Float64Array(size), this.x);
    this.width = copy(new Float64Array(size), this.width);
    this.sum = copy(new Float64Array(size), this.sum);
    this.count = copy(new Uint32Array(size), this.count);
    this.parent = copy(new Int32Array(size), this.parent);
    this.row = copy(new Uint16Array(size), this.row);
  }
}

/** Places the children of the box `at`, and a bar for each run of them that is too narrow. */
function placeChildren(tree: FlameTree, boxes: Boxes, at: number, scale: number): void {
  const node = boxes.node[at]!;
  const row = boxes.row[at]! + 1;
  let x = boxes.x[at]!;
  let runX = x;
  let runSum = 0;
  let runCount = 0;
  for (let child = tree.firstChild[node]!; child >= 0; child = tree.nextSibling[child]!) {
    const total = tree.total[child]!;
    const width = total * scale;
    if (width < CULL_WIDTH) {
      if (runCount === 0) runX = x;
      runSum += total;
      runCount++;
    } else {
      if (runCount > 0) {
        boxes.push(CULLED, row, runX, x - runX, runSum, runCount, node);
        runSum = 0;
        runCount = 0;
      }
      boxes.push(child, row, x, width, total, 1, node);
    }
    x += width;
  }
  if (runCount > 0) {
    boxes.push(CULLED, row, runX, x - runX, runSum, runCount, node);
  }
}

/** Boxes for `node` over the whole width, its ancestors above it and its descendants below. */
export function layoutTree(tree: FlameTree, zoomNode: number, width: number): Layout {
  const boxes = new Boxes();
  const ancestors: number[] = [];
  for (let i = zoomNode; i >= 0; i = tree.parent[i]!) {
    ancestors.push(i);
  }
  ancestors.reverse().forEach((node, row) => {
    boxes.push(node, row, 0, width, tree.total[node]!, 1, tree.parent[node]!);
  });

  // Breadth first: the list of boxes is its own queue, and comes out sorted by row and x.
  const zoomRow = ancestors.length - 1;
  const scale = tree.total[zoomNode]! > 0 ? width / tree.total[zoomNode]! : 0;
  for (let at = zoomRow; at < boxes.n; at++) {
    if (boxes.node[at] !== CULLED) {
      placeChildren(tree, boxes, at, scale);
    }
  }

  const rows = boxes.row[boxes.n - 1]! + 1;
  const rowStart = new Uint32Array(rows + 1);
  for (let i = 0; i < boxes.n; i++) {
    rowStart[boxes.row[i]! + 1]!++;
  }
  for (let r = 0; r < rows; r++) {
    rowStart[r + 1]! += rowStart[r]!;
  }
  return {
    n: boxes.n,
    node: boxes.node,
    x: boxes.x,
    width: boxes.width,
    sum: boxes.sum,
    count: boxes.count,
    parent: boxes.parent,
    rowStart,
    rows,
    zoomRow,
    zoomNode,
  };
}

/** The box at a point of the picture, or -1. */
export function boxAt(layout: Layout, x: number, row: number): number {
  if (row < 0 || row >= layout.rows) {
    return -1;
  }
  let low = layout.rowStart[row]!;
  let high = layout.rowStart[row + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (layout.x[middle]! <= x) low = middle + 1;
    else high = middle;
  }
  const box = low - 1;
  return box >= layout.rowStart[row]! && x < layout.x[box]! + layout.width[box]! ? box : -1;
}

/** The box that shows `node`, or -1 if it is culled or out of the zoom. */
export function boxOf(layout: Layout, tree: FlameTree, node: number): number {
  const row = tree.depth[node]!;
  if (row >= layout.rows) {
    return -1;
  }
  const from = layout.rowStart[row]!;
  const at = layout.node.subarray(from, layout.rowStart[row + 1]!).indexOf(node);
  return at < 0 ? -1 : from + at;
}
