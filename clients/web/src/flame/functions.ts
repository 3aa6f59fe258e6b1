// The table of functions, from the tree that is shown.
import type { FlameTree } from "./tree";

export interface FunctionRow {
  name: string;
  self: number;
  /** Samples with the function anywhere in the stack, each counted once however often it recurs. */
  total: number;
  frames: number;
  left?: { self: number; total: number };
  right?: { self: number; total: number };
}

/** By node: 1 for those that have no frame of the same function above them. */
function outermostFrames(tree: FlameTree): Uint8Array {
  const isOutermost = new Uint8Array(tree.n);
  const open = new Int32Array(tree.names.length);
  walk(
    tree,
    (node) => {
      isOutermost[node] = open[tree.name[node]!]!++ === 0 ? 1 : 0;
    },
    (node) => {
      open[tree.name[node]!]!--;
    },
  );
  return isOutermost;
}

/** Depth first without recursion of our own: stacks may be as deep as a program's. The root is left out. */
function walk(tree: FlameTree, enter: (node: number) => void, leave: (node: number) => void): void {
  let node = tree.firstChild[0]!;
  while (node > 0) {
    enter(node);
    if (tree.firstChild[node]! >= 0) {
      node = tree.firstChild[node]!;
      continue;
    }
    leave(node);
    while (tree.nextSibling[node]! < 0) {
      node = tree.parent[node]!;
      if (node <= 0) return;
      leave(node);
    }
    node = tree.nextSibling[node]!;
  }
}

/** All functions, the one with the largest self first. */
export function functionsOf(tree: FlameTree): FunctionRow[] {
  const isOutermost = outermostFrames(tree);
  const rows: (FunctionRow | undefined)[] = new Array(tree.names.length);
  for (let i = 1; i < tree.n; i++) {
    const name = tree.name[i]!;
    const row = (rows[name] ??= emptyRow(tree.names[name]!, tree.diff !== undefined));
    row.frames++;
    row.self += tree.self[i]!;
    row.total += isOutermost[i] ? tree.total[i]! : 0;
    if (tree.diff && row.left && row.right) {
      row.left.self += tree.diff.leftSelf[i]!;
      row.right.self += tree.diff.rightSelf[i]!;
      row.left.total += isOutermost[i] ? tree.diff.leftTotal[i]! : 0;
      row.right.total += isOutermost[i] ? tree.diff.rightTotal[i]! : 0;
    }
  }
  return rows
    .filter((row) => row !== undefined)
    .sort((a, b) => b.self - a.self || b.total - a.total || (a.name < b.name ? -1 : 1));
}

function emptyRow(name: string, isDiff: boolean): FunctionRow {
  const row: FunctionRow = { name, self: 0, total: 0, frames: 0 };
  return isDiff ? { ...row, left: { self: 0, total: 0 }, right: { self: 0, total: 0 } } : row;
}
