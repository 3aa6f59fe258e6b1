// One side of a diff as a tree of its own: only the frames that this side has, in the order that both sides share.
import { emptyTree, linkChildren, type FlameTree } from "./tree";

export interface Side {
  tree: FlameTree;
  /** By node of this tree: the node of the diff. */
  inDiff: Int32Array;
  /** By node of the diff: the node of this tree, or -1. */
  ofDiff: Int32Array;
}

export function sideOf(both: FlameTree, side: "left" | "right"): Side {
  const { leftTotal, rightTotal, leftSelf, rightSelf } = both.diff!;
  const [totals, selves] = side === "left" ? [leftTotal, leftSelf] : [rightTotal, rightSelf];
  const ofDiff = new Int32Array(both.n).fill(-1);
  const inDiff = new Int32Array(both.n);
  let n = 0;
  for (let i = 0; i < both.n; i++) {
    if (i === 0 || totals[i]! > 0) {
      ofDiff[i] = n;
      inDiff[n++] = i;
    }
  }

  const tree = emptyTree(both.names, n);
  for (let i = 0; i < n; i++) {
    const from = inDiff[i]!;
    tree.name[i] = both.name[from]!;
    tree.parent[i] = i === 0 ? -1 : ofDiff[both.parent[from]!]!;
    tree.depth[i] = both.depth[from]!;
    tree.total[i] = totals[from]!;
    tree.self[i] = selves[from]!;
    tree.maxDepth = Math.max(tree.maxDepth, tree.depth[i]!);
  }
  linkChildren(tree);
  return { tree, inDiff: inDiff.subarray(0, n), ofDiff };
}
