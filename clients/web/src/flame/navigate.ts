// Where the keyboard's cursor goes.
import { boxOf, CULLED, type Layout } from "./layout";
import { isMatch, type Matches } from "./search";
import type { FlameTree } from "./tree";

/** The nearest drawn box of the cursor's row in a direction, whoever its parent is. */
function beside(layout: Layout, tree: FlameTree, cursor: number, step: 1 | -1): number {
  const row = tree.depth[cursor]!;
  for (
    let box = boxOf(layout, tree, cursor) + step;
    box >= layout.rowStart[row]! && box < layout.rowStart[row + 1]!;
    box += step
  ) {
    if (layout.node[box] !== CULLED) {
      return layout.node[box]!;
    }
  }
  return cursor;
}

/** The first child wide enough to be drawn. */
function below(layout: Layout, tree: FlameTree, cursor: number): number {
  for (let child = tree.firstChild[cursor]!; child >= 0; child = tree.nextSibling[child]!) {
    if (boxOf(layout, tree, child) >= 0) {
      return child;
    }
  }
  return cursor;
}

/** The next drawn match in reading order, around the end. */
function nextMatch(layout: Layout, tree: FlameTree, matches: Matches, cursor: number, step: 1 | -1): number {
  const start = Math.max(0, boxOf(layout, tree, cursor));
  for (let i = 1; i <= layout.n; i++) {
    const node = layout.node[(start + step * i + layout.n * 2) % layout.n]!;
    if (node !== CULLED && isMatch(tree, matches, node)) {
      return node;
    }
  }
  return cursor;
}

/** The node that a key leads to, or null if the key does not move the cursor. */
export function moveCursor(
  layout: Layout,
  tree: FlameTree,
  matches: Matches | null,
  cursor: number,
  key: string,
): number | null {
  switch (key) {
    case "ArrowDown":
      return below(layout, tree, cursor);
    case "ArrowUp":
      return Math.max(0, tree.parent[cursor]!);
    case "ArrowLeft":
      return beside(layout, tree, cursor, -1);
    case "ArrowRight":
      return beside(layout, tree, cursor, 1);
    case "Home":
      return 0;
    case "n":
    case "N":
      return matches ? nextMatch(layout, tree, matches, cursor, key === "n" ? 1 : -1) : null;
    default:
      return null;
  }
}
