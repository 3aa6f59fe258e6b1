// Puts the whole of a subtree in the place of one that the server had cut.
import { TreeBuilder } from "../../flame/build";
import { nameOf, OTHER, type FlameTree } from "../../flame/tree";

/** The child of `parent` with the name, or -1. */
function childNamed(tree: FlameTree, parent: number, name: string): number {
  let child = tree.firstChild[parent]!;
  while (child >= 0 && nameOf(tree, child) !== name) {
    child = tree.nextSibling[child]!;
  }
  return child;
}

/** By node: 1 for those below `node`, without itself. Parents stand before their children. */
function below(tree: FlameTree, node: number): Uint8Array {
  const isBelow = new Uint8Array(tree.n);
  for (let i = node + 1; i < tree.n; i++) {
    const parent = tree.parent[i]!;
    isBelow[i] = parent === node || isBelow[parent] ? 1 : 0;
  }
  return isBelow;
}

/**
 * `whole` holds the stacks that begin with `path`, the names from below the root to `node` of `tree`. The same tree
 * where it does not.
 */
export function graft(tree: FlameTree, node: number, whole: FlameTree, path: string[]): FlameTree {
  const top = path.reduce((at, name) => (at < 0 ? at : childNamed(whole, at, name)), 0);
  if (top < 0) {
    return tree;
  }
  const names = [...tree.names];
  const known = new Map(names.map((name, i) => [name, i]));
  const nameIds = whole.names.map((name) => {
    const id = known.get(name) ?? names.push(name) - 1;
    known.set(name, id);
    return id;
  });

  // Self values of both trees in a row: those of the cut tree first.
  const builder = new TreeBuilder(names);
  const isReplaced = below(tree, node);
  const isNew = below(whole, top);
  const places = new Int32Array(tree.n + whole.n).fill(-1);
  const self = new Float64Array(tree.n + whole.n);
  self.set(tree.self);
  self.set(whole.self, tree.n);
  places[0] = 0;
  for (let i = 1; i < tree.n; i++) {
    if (!isReplaced[i]) {
      places[i] = builder.child(places[tree.parent[i]!]!, tree.name[i]!);
    }
  }
  places[tree.n + top] = places[node]!;
  self[node] = 0;
  for (let i = top + 1; i < whole.n; i++) {
    if (isNew[i]) {
      places[tree.n + i] = builder.child(places[tree.n + whole.parent[i]!]!, nameIds[whole.name[i]!]!);
    }
  }
  return builder.finish({ ...tree, self, diff: undefined }, (move) => {
    for (let i = 0; i < places.length; i++) {
      if (places[i]! >= 0) {
        move(i, places[i]!);
      }
    }
  });
}

/** What the server summed as "other" below a node: in how many places, and how much. */
export function othersBelow(tree: FlameTree, node: number): { places: number; total: number } {
  const other = tree.names.indexOf(OTHER);
  if (other < 0) {
    return { places: 0, total: 0 };
  }
  const isBelow = below(tree, node);
  let places = 0;
  let total = 0;
  for (let i = 1; i < tree.n; i++) {
    if (isBelow[i] && tree.name[i] === other) {
      places++;
      total += tree.total[i]!;
    }
  }
  return { places, total };
}
