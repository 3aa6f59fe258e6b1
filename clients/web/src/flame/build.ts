// Builds a tree from nodes that arrive parents first; equal names below one parent become one node.
import { emptyTree, linkChildren, type FlameTree } from "./tree";

export class TreeBuilder {
  private parents = new Int32Array(1024);
  private nameIds = new Uint32Array(1024);
  private n = 1;
  private readonly byKey = new Map<number, number>();

  constructor(private readonly names: string[]) {
    this.parents[0] = -1;
  }

  /** Returns the child of `parent` with this name; makes it first where it is missing. */
  child(parent: number, name: number): number {
    const key = parent * this.names.length + name;
    const known = this.byKey.get(key);
    if (known !== undefined) {
      return known;
    }
    if (this.n === this.parents.length) {
      const parents = new Int32Array(2 * this.n);
      parents.set(this.parents);
      this.parents = parents;
      const nameIds = new Uint32Array(2 * this.n);
      nameIds.set(this.nameIds);
      this.nameIds = nameIds;
    }
    this.parents[this.n] = parent;
    this.nameIds[this.n] = name;
    this.byKey.set(key, this.n);
    return this.n++;
  }

  /**
   * The tree, with the self values of `source` at the nodes that they go to: `add` is called with a function that adds
   * those of a source's node to a node of this tree.
   */
  finish(source: FlameTree, add: (move: (from: number, to: number) => void) => void): FlameTree {
    const n = this.n;
    const tree = emptyTree(this.names, n);
    tree.parent.set(this.parents.subarray(0, n));
    tree.name.set(this.nameIds.subarray(0, n));
    tree.name[0] = source.name[0]!;
    for (let i = 1; i < n; i++) {
      tree.depth[i] = tree.depth[tree.parent[i]!]! + 1;
      tree.maxDepth = Math.max(tree.maxDepth, tree.depth[i]!);
    }

    const from = source.diff;
    const left = new Float64Array(from ? n : 0);
    const right = new Float64Array(from ? n : 0);
    add((node, to) => {
      tree.self[to]! += source.self[node]!;
      if (from) {
        left[to]! += from.leftSelf[node]!;
        right[to]! += from.rightSelf[node]!;
      }
    });

    sumUp(tree.parent, tree.self, tree.total);
    if (from) {
      tree.diff = {
        leftSelf: left,
        rightSelf: right,
        leftTotal: sumUp(tree.parent, left, new Float64Array(n)),
        rightTotal: sumUp(tree.parent, right, new Float64Array(n)),
        leftTicks: from.leftTicks,
        rightTicks: from.rightTicks,
      };
    }
    linkChildren(tree);
    return tree;
  }
}

function sumUp(parent: Int32Array, self: Float64Array, total: Float64Array): Float64Array {
  total.set(self);
  for (let i = total.length - 1; i > 0; i--) {
    total[parent[i]!]! += total[i]!;
  }
  return total;
}
