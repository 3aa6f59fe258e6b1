// How many samples a frame had: the same question of a type that counts them has the same frames, at other places.
import { nameOf, OTHER, type FlameTree } from "./tree";

/** The node of `other` with the same names from the root on as `node` of `tree`, or -1. */
function sameNode(tree: FlameTree, node: number, other: FlameTree): number {
  const names: string[] = [];
  for (let i = node; i > 0; i = tree.parent[i]!) {
    names.push(nameOf(tree, i));
  }
  let found = 0;
  for (let i = names.length - 1; i >= 0 && found >= 0; i--) {
    let child = other.firstChild[found]!;
    while (child >= 0 && nameOf(other, child) !== names[i]) {
      child = other.nextSibling[child]!;
    }
    found = child;
  }
  return found;
}

/**
 * One number, or those of both sides of a diff. undefined where it is not known: the server sums the smallest frames of each
 * answer, and not the same ones in both.
 */
export function samplesOf(tree: FlameTree, node: number, counts: FlameTree | undefined): number[] | undefined {
  if (!counts || counts.total[0] === 0 || (node > 0 && nameOf(tree, node) === OTHER)) {
    return undefined;
  }
  const found = sameNode(tree, node, counts);
  if (found < 0) {
    return undefined;
  }
  return counts.diff ? [counts.diff.leftTotal[found]!, counts.diff.rightTotal[found]!] : [counts.total[found]!];
}
